"""Threads that share the rows of a call: the caller's own, and helpers that watch for jobs before they go to sleep.

Waking a thread takes longer than many a call, so a helper that has finished a job first watches its box for another, in
machine code and without the GIL, as the threads of OpenMP do. What is handed to it there is a copy of the job.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import queue
import struct
import threading
import time
from typing import Any

import numpy as np

# -- emitted from here --

# Fewer entries than this are not worth a second thread, and so many are a thread's portion at the least.
ENOUGH = 32768
PORTION = 1024
PORTIONS = 16  # of a thread
LANES = 16  # portions of more rows are multiples of it: blocks of rows are not cut
PATIENCE = 20000  # looks of the caller at whether helpers are finished, some tens of microseconds
LOOKS = 8000  # of a helper into its box before it sleeps, some hundred microseconds
HELPERS = 255  # at most
BOX = 256  # bytes of a box

# A job is 15 words: kernel, x, out, loss, label, y, state, d, stride, end, portion, high, cap, the bytes of scratch
# that it needs, where the indices are in it. Behind it is its state: the next row, how many are finished, how many are
# left to the caller. A box is a helper's: its status (word 0), its owner's job (1), how much scratch it has (8) and
# where (9), and a copy of a job (16 and on). Status: 0 asleep or about to be, 1 watching, 2 claimed by a caller,
# 3 handed a job, 4 working, 5 finished; from 2 on only the owner sets it back to 1.
JOB = struct.Struct("11qd3q").pack_into
Job = ctypes.c_int64 * 20
STATE = 16
TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{declared}

define private i64 @word(ptr %at, i64 %i) alwaysinline {{
  %p = getelementptr i64, ptr %at, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}}

define private i1 @change(ptr %status, i64 %from, i64 %to) alwaysinline {{
  %pair = cmpxchg ptr %status, i64 %from, i64 %to acq_rel acquire
  %done = extractvalue {{ i64, i1 }} %pair, 1
  ret i1 %done
}}

; The kernel of a job on as many portions of rows as there are left, with this thread's scratch.
define private void @work(ptr %job, i64 %scratch, i64 %patience) {{
  %k = call i64 @word(ptr %job, i64 0)
  %x = call i64 @word(ptr %job, i64 1)
  %out = call i64 @word(ptr %job, i64 2)
  %loss = call i64 @word(ptr %job, i64 3)
  %label = call i64 @word(ptr %job, i64 4)
  %y = call i64 @word(ptr %job, i64 5)
  %state = call i64 @word(ptr %job, i64 6)
  %d = call i64 @word(ptr %job, i64 7)
  %stride = call i64 @word(ptr %job, i64 8)
  %end = call i64 @word(ptr %job, i64 9)
  %portion = call i64 @word(ptr %job, i64 10)
  %h = call i64 @word(ptr %job, i64 11)
  %cap = call i64 @word(ptr %job, i64 12)
  %from = call i64 @word(ptr %job, i64 14)
  %kernel = inttoptr i64 %k to ptr
  %high = bitcast i64 %h to double
  %error = add i64 %scratch, 8
  %floats = add i64 %scratch, 64
  %indices = add i64 %floats, %from
  call i32 %kernel(i64 %scratch, i64 %error, i64 %x, i64 %out, i64 %floats, i64 %indices, i64 %loss, i64 %label,
                   i64 %y, i64 %state, i64 %d, i64 %stride, i64 %end, i64 %portion, double %high, i64 %cap,
                   i64 %patience)
  ret void
}}

; A helper's: do what is put into the box, until nothing was for so many looks or the helper is dismissed.
define i64 @watch(ptr %box, i64 %looks) {{
begin:
  %job = getelementptr i64, ptr %box, i64 16
  %scratch = call i64 @word(ptr %box, i64 9)
  store atomic i64 1, ptr %box release, align 8
  br label %look
look:
  %left = phi i64 [ %looks, %begin ], [ %looks, %do ], [ %less, %wait ], [ %less, %tired ]
  %status = load atomic i64, ptr %box acquire, align 8
  switch i64 %status, label %wait [ i64 0, label %leave i64 3, label %handed ]
handed:
  %taken = call i1 @change(ptr %box, i64 3, i64 4)
  br i1 %taken, label %do, label %wait
do:
  call void @work(ptr %job, i64 %scratch, i64 0)
  store atomic i64 5, ptr %box release, align 8
  br label %look
wait:
  {pause}
  %less = sub i64 %left, 1
  %over = icmp slt i64 %less, 0
  br i1 %over, label %tired, label %look
tired:
  %gone = call i1 @change(ptr %box, i64 1, i64 0)
  br i1 %gone, label %leave, label %look
leave:
  ret i64 0
}}

; A caller's: the whole job, with the help of those who watch. If more than `known` helpers sleep, or have too little
; scratch, their number is returned and nothing is done; else 0.
define i64 @conduct(ptr %boxes, i64 %count, i64 %known, ptr %job, i64 %scratch, i64 %patience) {{
begin:
  %need = call i64 @word(ptr %job, i64 13)
  %me = ptrtoint ptr %job to i64
  br label %count.next
count.next:
  %i = phi i64 [ 0, %begin ], [ %i.next, %count.one ]
  %absent = phi i64 [ 0, %begin ], [ %absent.next, %count.one ]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %count.one, label %counted
count.one:
  %i.at = mul i64 %i, 32
  %i.box = getelementptr i64, ptr %boxes, i64 %i.at
  %i.status = load atomic i64, ptr %i.box acquire, align 8
  %i.asleep = icmp eq i64 %i.status, 0
  %i.room = call i64 @word(ptr %i.box, i64 8)
  %i.small = icmp slt i64 %i.room, %need
  %i.absent = or i1 %i.asleep, %i.small
  %i.one = zext i1 %i.absent to i64
  %absent.next = add i64 %absent, %i.one
  %i.next = add i64 %i, 1
  br label %count.next
counted:
  %unknown = icmp sgt i64 %absent, %known
  br i1 %unknown, label %wake, label %hand.next
wake:
  ret i64 %absent
hand.next:
  %j = phi i64 [ 0, %counted ], [ %j.next, %hand.end ]
  %j.more = icmp slt i64 %j, %count
  br i1 %j.more, label %hand.one, label %own
hand.one:
  %j.at = mul i64 %j, 32
  %j.box = getelementptr i64, ptr %boxes, i64 %j.at
  %claimed = call i1 @change(ptr %j.box, i64 1, i64 2)
  br i1 %claimed, label %hand.fits, label %hand.end
hand.fits:
  %j.room = call i64 @word(ptr %j.box, i64 8)
  %fits = icmp sge i64 %j.room, %need
  br i1 %fits, label %hand, label %dismiss
dismiss:
  store atomic i64 0, ptr %j.box release, align 8
  br label %hand.end
hand:
  %j.job = getelementptr i64, ptr %j.box, i64 16
  call void @llvm.memcpy.p0.p0.i64(ptr %j.job, ptr %job, i64 120, i1 false)
  %j.owner = getelementptr i64, ptr %j.box, i64 1
  store atomic i64 %me, ptr %j.owner monotonic, align 8
  store atomic i64 3, ptr %j.box release, align 8
  br label %hand.end
hand.end:
  %j.next = add i64 %j, 1
  br label %hand.next
own:
  call void @work(ptr %job, i64 %scratch, i64 %patience)
  br label %end.next
end.next:
  %k = phi i64 [ 0, %own ], [ %k.next, %end.end ]
  %k.more = icmp slt i64 %k, %count
  br i1 %k.more, label %end.one, label %end
end.one:
  %k.at = mul i64 %k, 32
  %k.box = getelementptr i64, ptr %boxes, i64 %k.at
  %k.owner = getelementptr i64, ptr %k.box, i64 1
  %owner = load atomic i64, ptr %k.owner monotonic, align 8
  %mine = icmp eq i64 %owner, %me
  br i1 %mine, label %end.wait, label %end.end
end.wait:
  %tries = phi i64 [ %patience, %end.one ], [ %fewer, %end.pause ], [ %fewer, %end.yield ], [ %tries, %late ]
  %status = load atomic i64, ptr %k.box acquire, align 8
  switch i64 %status, label %end.pause [ i64 3, label %late i64 5, label %free ]
end.pause:
  {pause}
  %fewer = sub i64 %tries, 1
  %long = icmp slt i64 %fewer, 0
  br i1 %long, label %end.yield, label %end.wait
end.yield:
  {step_aside}
  br label %end.wait
late:
  %back = call i1 @change(ptr %k.box, i64 3, i64 2)
  br i1 %back, label %free, label %end.wait
free:
  store atomic i64 0, ptr %k.owner monotonic, align 8
  store atomic i64 1, ptr %k.box release, align 8
  br label %end.end
end.end:
  %k.next = add i64 %k, 1
  br label %end.next
end:
  ret i64 0
}}
"""
PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
PAUSES.update(AMD64=PAUSES["x86_64"], arm64=PAUSES["aarch64"])


def threads() -> int:
    """How many threads share the rows: FYSYM_NUM_THREADS, or the processors that this process may use."""
    chosen = os.environ.get("FYSYM_NUM_THREADS", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


THREADS = threads()


class Machine:
    """The two functions above as machine code."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        declared, pause = PAUSES.get(platform.machine(), ("", ""))
        step_aside = ""
        if hasattr(os, "sched_yield"):
            declared, step_aside = f"{declared}\ndeclare i32 @sched_yield()", "call i32 @sched_yield()"
        module = llvm.parse_assembly(TEXT.format(declared=declared, pause=pause, step_aside=step_aside))
        target = llvm.Target.from_default_triple().create_target_machine(opt=1, codemodel="jitdefault", jit=True)
        self.engine = llvm.create_mcjit_compiler(module, target)
        self.engine.finalize_object()
        pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
        watch, conduct = (self.engine.get_function_address(name) for name in ("watch", "conduct"))
        self.watch = ctypes.CFUNCTYPE(size, pointer, size)(watch)
        self.conduct = ctypes.CFUNCTYPE(size, pointer, size, size, pointer, pointer, size)(conduct)


machine_code = functools.cache(Machine)


class Scratch(threading.local):
    """A thread's own memory: 64 bytes for what a kernel returns, then rows of floats, then one of indices."""

    size = -1
    address = 0

    def room(self, need: int) -> int:
        """The address of so many bytes."""
        if self.size < need:
            self.memory = np.zeros(need + 64, np.uint8)
            self.address = -(-self.memory.ctypes.data // 64) * 64
            self.size = need
        return self.address


scratch = Scratch()


class Helpers:
    """Threads that join in what a caller has begun; one that wakes too late finds nothing left to do."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: Any = queue.SimpleQueue()
        self.count = 0
        self.memory = np.zeros(HELPERS * BOX + 64, np.uint8)
        self.boxes = -(-self.memory.ctypes.data // 64) * 64

    def start(self, count: int) -> None:
        """See to it that there are so many threads."""
        with self.lock:
            while self.count < count:
                box = self.boxes + BOX * self.count
                threading.Thread(target=self.serve, args=(box, self.memory), name="fysym", daemon=True).start()
                self.count += 1

    def wake(self, job: Any, count: int) -> None:
        """Have so many of those who sleep do the job, which is called."""
        for _ in range(count):
            self.jobs.put(job)

    def serve(self, box: int, memory: Any) -> None:
        """What a helper does all its life; its frame keeps the code and the memory that it uses."""
        code = machine_code()
        words = ctypes.cast(box, ctypes.POINTER(ctypes.c_int64))
        while True:
            job = self.jobs.get()
            with contextlib.suppress(Exception):  # what it leaves, the caller does
                job()
            del job
            if self.jobs.empty():
                words[8], words[9] = scratch.size, scratch.address
                code.watch(box, LOOKS)


helpers = Helpers()


def _forget() -> None:
    """A forked child has none of the threads."""
    global helpers
    helpers = Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def share(
    kernel: int, arrays: Any, places: Any, n: int, d: int, stride: int, high: float, cap: int, need: int, indices: int
) -> int:
    """A kernel (its address) over n rows of d scores, by as many threads as are worth it; how many rows it left.

    `places` are the addresses of x, out, loss, label and y, which are in `arrays`; there is room for `cap` candidates
    in `need` bytes of scratch, and for their indices at `indices`.
    """
    count = min(THREADS, n, -(-n * d // ENOUGH), HELPERS + 1)
    portion = max(1, PORTION // d, n // (PORTIONS * count)) if count > 1 else n
    portion = -(-portion // LANES) * LANES if portion > LANES else portion
    job = Job()
    address = ctypes.addressof(job)
    JOB(job, 0, kernel, *places, address + 8 * STATE, d, stride, n, portion, high, cap, need, indices)
    conduct, team = machine_code().conduct, helpers
    if count == 1:
        conduct(0, 0, 0, address, scratch.room(need), 0)
        return job[STATE + 2]
    if team.count < count - 1:
        team.start(count - 1)

    def join(kept: Any = (job, arrays)) -> None:
        conduct(0, 0, 0, address, scratch.room(need), 0)

    own, known = scratch.room(need), 0
    while absent := conduct(team.boxes, count - 1, known, address, own, PATIENCE):
        team.wake(join, absent - known)
        known = absent
    while job[STATE + 1] < n:
        time.sleep(1e-5)
    return job[STATE + 2]
