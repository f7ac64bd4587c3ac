"""Hostile texts for the parser and the compiler, with a watchdog: `python -m tests.fuzz --count 200000 --seed 1`.

Text number i of a seed is always the same. Every text is parsed, every tenth is also read as a range, and
`--compiles N` also compiles N of those that parse, under short deadlines. The work is done in child processes
with a limit on their memory; a child that is stuck on a text is ended, and the text is reported. A violation is

- an exception that is not a FysymError, or an end of the process,
- a parse longer than its time limit, or a compilation longer than its deadline, each plus 2 seconds,
- an expression that is not finite and real,
- any sign that something in the text was run: see `watch`.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import faulthandler
import json
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sympy

import fysym
from fysym import parse, ranges, truth
from fysym.catalog import SEPARABLE as ENTRIES
from fysym.errors import FysymError, ParseError

GRACE = 2.0  # seconds past a time limit that are still a kept promise
MEMORY = 2 * 2**30  # bytes a child may take beyond what it starts with
USE_SECONDS = 10.0  # for the words, the code and a prediction of what was compiled; no promise, only a bound
COMMAND = [sys.executable, "-m", "tests.fuzz"]
REGRESSIONS = Path(__file__).parent / "regressions" / "texts.jsonl"

# Texts

ENTROPIES = [
    *(entry.expression for entry in ENTRIES.values()),
    "Piecewise((t, t < 1/2), (1 - t, True))",
    "t*(1-t) + min(t, 2*(1-t))/2",
    "t if t < 1/2 else 1 - t",
    "t*(1-t) + exp(-10**8*(t-1/3)**2)/(4*10**7)",
    "-t*log(t) - t*atan(16*t/3) + log(cos(t)) + asinh(16*t/3)/5 + sqrt(1-t**2) + t**(3/10) - t**(17/5)",
    "xlogy(t, t) + log1p(t) + expm1(t) - log2(t) + LambertW(t) + lambertw(t - 1, -1) + gamma(t + 1)",
    "abs(t - 1/2) + sign(t - 1/3) + max(t, 1/4, t**2) + erf(t) + digamma(t + 1) + cbrt(t)",
]
RANGES = [
    "alpha > 1", "0 < k < 1", "q >= 1", "1 < alpha <= 3 and alpha < 5/2", "alpha < oo", "-oo < a", "a > -inf",
    "b > sqrt(2)", "not alpha > 1", "alpha < (not oo)", "alpha != 1", "alpha > 1 or alpha < 0", "alpha == 1",
    "2 < alpha < 1", "alpha > alpha", "1", "True", "alpha", "alpha > 10**10**10", "alpha > t", "alpha > 1/0",
    "alpha < ++oo", "alpha > -(-oo)", "alpha > --oo", "alpha > oo*0", "k", "k > (1 if k > 0 else 2)",
]  # fmt: skip
FUNCTIONS = [*parse.FUNCTIONS, "Piecewise"]
NAMES = ["t", "t", "t", "t", "alpha", "k", "s", "x", "beta", "S", "I", "N", "Q", "E", "pi", "oo", "b_alpha", "_", "nan"]
NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "10",
    "1/2",
    "1/3",
    "0.1",
    "1e-9",
    "1e300",
    "1e-300",
    "1e400",
    "-1",
    ".5",
    "5.",
    "00",
    "1e0",
]
NUMBERS += [
    "9007199254740993",
    "10**9",
    "2**64",
    "9**9**9",
    "999999999",
    "1e-400",
    "0.30000000000000004",
    "17/5",
    "1_0",
    "0x1",
]
OPERATORS = ["+", "-", "*", "/", "**", "+", "-", "*"]
JUNK_OPERATORS = [
    "//",
    "%",
    "@",
    "<<",
    "&",
    "|",
    "^",
    "==",
    "<",
    ">=",
    ",",
    ":=",
    "->",
    ";",
    "=",
    "!=",
    " and ",
    " or ",
    " if ",
]
CANARY = "fysym_fuzz_canary"
ATTACKS = [
    attack.replace("canary", CANARY)
    for attack in (
        "canary()", "__import__('canary')", "__builtins__.canary()", "__builtins__['canary']()", "(lambda: canary())()",
        "[canary() for _ in (1,)]", "[c for c in ().__class__.__bases__[0].__subclasses__()]", "eval('canary()')",
        "exec('canary()')", "getattr(t, 'canary')", "t.canary()", "f'{canary()}'", "(x := canary())", "log(*canary())",
        "log(**canary())", "log(t, key=canary())", "canary", "t + canary(t)", "{canary(): t}", "{**canary()}",
        "print(canary())", "await canary()", "yield canary()", "t\ncanary()", "t; canary()", ")\ncanary()\n(",
        "t) + canary() + (t", "t # canary()", "'''canary()'''", "t\\\n+canary()", "t\x0ccanary()", "t\u2028canary()",
        "t\x85canary()", "log(t)(canary())", "t[canary()]", "t @ canary()", "open('/tmp/canary', 'w')",
        "__import__('os').system('touch /tmp/canary')", "t.__class__.__mro__", "S('__import__')", "sympify(t)",
        "Symbol('t')", "Function('f')(t)", "Lambda(t, t)", "Integral(t, t)", "I*t", "S.NaN", "nan*t", "breakpoint()",
        "exit()", "quit()", "help(t)", "input()", "globals()", "vars()", "__name__", "__debug__", "...", "None",
        "NotImplemented",
    )
]  # fmt: skip
LOOK_ALIKES = {
    "t": "\u0442\U0001d461\uff54",
    "-": "\u2212\u2010\u2011\ufe63",
    "*": "\u2217\u00d7\u22c5\uff0a",
    "(": "\uff08\u207d",
    ")": "\uff09\u207e",
    "/": "\u2215\u2044\u00f7",
    "1": "\u00b9\uff11\u0661\U0001d7cf",
    "2": "\u00b2\uff12\u0662",
    " ": "\u00a0\u2003\u3000\u200b\ufeff\x1c\x85\u2028\u2029",
    "+": "\uff0b\u207a",
    "l": "\uff4c\u217c",
    "<": "\uff1c\u2039",
}
ODD = "\x00\x01\x07\x1a\x1b\x7f\ud800\udfff\ufffe\uffff\U0010ffff\u202e\u0301\n\r\t\f\v\u00e9\u03b1\u03bb\u221e\u221a"
ODD += "'\"`\\#$&?@[]{}|~^;:=!%.,_"


def text(seed: Any, index: int) -> str:
    """Text number `index` of a seed."""
    rng = random.Random(f"{seed}:{index}")
    kinds = {_tree: 40, _mutant: 30, _tokens: 10, _attack: 7, _repeated: 8, _noise: 5}
    (kind,) = rng.choices(list(kinds), list(kinds.values()))
    return kind(rng)


def range_text(seed: Any, index: int) -> str:
    """The text of a range, number `index` of a seed."""
    rng = random.Random(f"{seed}:range:{index}")
    made = rng.choice(RANGES)
    if rng.random() < 0.3:
        return f"{_tree(rng, 2)} {rng.choice(['<', '<=', '>', '>=', '=='])} {rng.choice(['alpha', _tree(rng, 1)])}"
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        made = _mutated(rng, made, RANGES)
    return made


def _tree(rng: random.Random, depth: int | None = None) -> str:
    """An expression by the grammar, mostly valid."""
    depth = rng.choice([1, 2, 2, 3, 3, 4, 5]) if depth is None else depth
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(NAMES) if rng.random() < 0.6 else rng.choice(NUMBERS)

    def part() -> str:
        return _tree(rng, depth - 1)

    kind = rng.random()
    if kind < 0.45:
        return f"{part()}{rng.choice(['', ' '])}{rng.choice(OPERATORS)}{part()}"
    if kind < 0.55:
        return f"({part()}){rng.choice(OPERATORS)}({part()})"
    if kind < 0.62:
        return (
            f"({part()})**{rng.choice(['2', '3', '(1/2)', '-1', '(3/7)', '10', 'alpha', '0.3', '-2.5', '9999', '0'])}"
        )
    if kind < 0.85:
        name = rng.choice(FUNCTIONS[:-1])
        count = {"log": rng.choice([1, 1, 2]), "xlogy": 2}.get(name, 1)
        count = rng.randint(1, 4) if name.lower() in ("min", "max") else count
        return f"{name}({', '.join(part() for _ in range(count))})"
    if kind < 0.9:
        return f"-{part()}"
    if kind < 0.95:
        pairs = ", ".join(f"({part()}, {_condition(rng, depth - 1)})" for _ in range(rng.randint(1, 3)))
        return f"Piecewise({pairs}, ({part()}, True))"
    return f"({part()} if {_condition(rng, depth - 1)} else {part()})"


def _condition(rng: random.Random, depth: int) -> str:
    sign, side = rng.choice(["<", "<=", ">", ">=", "==", "!="]), rng.choice(["1/2", "0", "t", "1"])
    compare = f"{_tree(rng, max(depth, 0))} {sign} {side}"
    kind = rng.random()
    if kind < 0.7:
        return compare
    if kind < 0.8:
        return f"not {compare}"
    return f"{compare} {rng.choice(['and', 'or'])} {rng.choice(['t < 3/4', 'True', 'False', compare])}"


def _mutant(rng: random.Random) -> str:
    made = rng.choice(ENTROPIES) if rng.random() < 0.7 else _tree(rng)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        made = _mutated(rng, made, ENTROPIES)
    return made


def _mutated(rng: random.Random, made: str, corpus: list[str]) -> str:
    """One change: a sign lost, doubled or replaced, a look-alike, a splice, a huge number, an attack inside."""
    at = rng.randint(0, len(made))
    end = min(len(made), at + rng.choice([0, 1, 1, 1, 2, 5]))
    kind = rng.randrange(9)
    if kind == 0:
        return made[:at] + made[end:]
    if kind == 1:
        return made[:end] + made[at:end] * rng.choice([1, 2, 30]) + made[end:]
    if kind == 2:
        return made[:at] + rng.choice(ODD) + made[end:]
    if kind == 3:
        sign = rng.choice(sorted(LOOK_ALIKES))
        return made.replace(sign, rng.choice(LOOK_ALIKES[sign]), rng.choice([1, -1]))
    if kind == 4:
        other = rng.choice(corpus)
        return made[:at] + other[rng.randint(0, len(other)) :]
    if kind == 5:
        return made[:at] + rng.choice([*NUMBERS, "9" * rng.randint(1, 400), f"1e{rng.randint(-500, 500)}"]) + made[end:]
    if kind == 6:
        return made[:at] + rng.choice(OPERATORS + JUNK_OPERATORS) + made[at:]
    if kind == 7:
        return made[:at] + rng.choice([*NAMES, *FUNCTIONS, "(", ")", "lambda", "__", *ATTACKS]) + made[end:]
    flipped = bytearray(made.encode("utf-8", "surrogatepass"))
    if flipped:
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return flipped.decode("latin-1" if rng.random() < 0.2 else "utf-8", "replace")


def _tokens(rng: random.Random) -> str:
    """Tokens in any order."""
    pool = [*NAMES, *NUMBERS, *OPERATORS, *JUNK_OPERATORS, "(", "(", ")", ")", " ", "\n", "not ", " else ", "True", "("]
    pool += [f"{name}(" for name in FUNCTIONS]
    return "".join(rng.choice(pool) for _ in range(rng.randint(1, 25)))


def _attack(rng: random.Random) -> str:
    attack = rng.choice(ATTACKS)
    around = rng.choice(
        [
            "{}",
            "t + {}",
            "log({})",
            "({})",
            "-{}",
            "t*(1 - t) + {}*0",
            "Piecewise((t, {}), (0, True))",
            "{} if t < 1 else t",
        ]
    )
    made = around.replace("{}", attack)
    return _mutated(rng, made, ATTACKS) if rng.random() < 0.3 else made


def _repeated(rng: random.Random) -> str:
    """Deep, long or huge."""
    n = rng.choice([3, 10, 45, 90, 99, 101, 300, 1000, 5000, 100_000])
    made = rng.choice(
        [
            lambda: "(" * n + "t" + ")" * n,
            lambda: rng.choice(["-", "+", "not ", "(", "~", "--", "exp(", "(t if t<1 else "]) * n + "t",
            lambda: (
                "t"
                + rng.choice(
                    ["+t", "*t", "**t", "/t", "-1", "**2", "+1/7", "*(1-t)", " if t<1 else t", "<t", " and t", ",t"]
                )
                * n
            ),
            lambda: (
                rng.choice([*FUNCTIONS, "1/", "1-", "2**", "t**"]).join([""] + ["("] * min(n, 60))
                + "t"
                + ")" * min(n, 60)
            ),
            lambda: (
                f"{rng.choice(FUNCTIONS)}(" * (n % 61) + rng.choice(["t", "1", "-1", "1/2", "alpha"]) + ")" * (n % 61)
            ),
            lambda: "9" * n,
            lambda: f"t**{'9' * (n % 400)}",
            lambda: f"{rng.choice(NUMBERS)}**{rng.choice(NUMBERS)}**{rng.choice(NUMBERS)}*t",
            lambda: f"gamma({rng.choice(NUMBERS)})**{rng.choice(NUMBERS)}",
            lambda: f"(t + {rng.choice(['1', 'alpha', 'sqrt(2)', 'pi'])})**{rng.randint(2, 12_000)}",
            lambda: " + ".join(f"t**({k}/{rng.randint(1, 99)})" for k in range(n % 400 + 1)),
            lambda: f"{rng.choice(['min', 'max'])}(" + ", ".join(_tree(rng, 1) for _ in range(n % 200 + 1)) + ")",
            lambda: "a" * n,
            lambda: " ".join(["t"] * n),
            lambda: "\n" * n + "t" + "\n" * n + ")",
            lambda: "1." + "0" * n + "1*t",
            lambda: "*".join(f"({_tree(rng, 1)})" for _ in range(n % 60 + 1)),
            lambda: "exp(" * (n % 20) + _tree(rng, 2) + ")" * (n % 20),
        ]
    )()
    return made[:120_000]


def _noise(rng: random.Random) -> str:
    length = rng.choice([0, 1, 2, 5, 20, 100])
    pools = [ODD, "t()+-*/ 12.", [chr(rng.randrange(0x110000)) for _ in range(20)], [chr(c) for c in range(256)]]
    pool = rng.choice(pools)
    return "".join(rng.choice(pool) for _ in range(length))


# What a text must not do


def watch() -> Iterator[str]:
    """Plant canaries; the iterator yields what was touched since the last look, and never ends.

    While a text is parsed nothing is opened, imported or executed at all, but for functions that `truth` and SymPy's
    polynomials make of numbers. Python's own lazy imports are let through. A compilation executes code that fysym
    printed itself, so there only the canaries and acts that reach outside the process count.
    """
    touched: list[str] = []

    def canary(*_: Any, **__: Any) -> None:
        touched.append("the canary was called")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not _watching:
            return
        outside = event.startswith(
            ("os.", "subprocess.", "socket.", "shutil.", "builtins.input", "pty.", "webbrowser.")
        )
        inside = event in ("exec", "open", "import")
        if event in ("os.listdir", "os.scandir") or not (outside or inside):
            return
        if event == "exec" and getattr(arguments[0], "co_filename", "") == truth.FILE and CANARY not in repr(arguments):
            return
        if CANARY in repr(arguments) and event != "compile":
            touched.append(f"{event} {arguments!r}"[:200])
        elif outside or (_watching[0] == "parse" and inside):
            frame: Any = sys._getframe()
            while frame is not None:
                if frame.f_code.co_filename.endswith(LET_THROUGH):
                    return
                frame = frame.f_back
            if event != "import":
                touched.append(f"{event} {arguments!r}"[:200])

    setattr(builtins, CANARY, canary)
    sys.addaudithook(hook)
    while True:
        seen = "; ".join(touched)
        touched.clear()
        yield seen


_watching: list[str] = []
LET_THROUGH = ("importlib._bootstrap>", os.path.join("sympy", "polys", "monomials.py"))


@contextlib.contextmanager
def watched(stage: str) -> Iterator[None]:
    _watching[:] = [stage]
    try:
        yield
    finally:
        _watching.clear()


# One text


@dataclass
class Outcome:
    """What became of one text: "accepted" or "refused", the problem if there is one, and how long it took."""

    kind: str
    value: Any = None
    problem: str | None = None
    seconds: float = 0.0
    over: float = 0.0  # seconds past the deadline


def check_parse(given: str) -> Outcome:
    """Parse one text and judge what happened."""
    return _judged(lambda: parse.parse_expression(given), "parse", parse.MAX_SECONDS, given)


def check_range(given: str) -> Outcome:
    """Read one text as the range of alpha, and the name in it, and judge what happened."""

    def work() -> Any:
        ranges.parse_range("alpha", given)
        return ranges.name_in_range(given)

    return _judged(work, "parse", parse.MAX_SECONDS, given)


def check_compile(given: str, params: dict[str, Any], deadline: float, name: str | None) -> Outcome:
    """Compile one text and judge what happened."""
    return _judged(
        lambda: fysym.compile(given, params=params, deadline=deadline, name=name), "compile", deadline, given
    )


def check_use(reg: fysym.Regularizer, given: str) -> Outcome:
    """Ask a regularizer for its words, its code and a prediction, and judge what happened."""

    def work() -> None:
        repr(reg)
        reg.report()
        if not reg.params:
            reg.source()
            total = reg.predict([0.5, 0.0, -0.25]).sum()
            if not abs(total - 1) <= 1e-14:
                raise AssertionError(f"a prediction sums to {total!r}")

    return _judged(work, "use", USE_SECONDS, given)


def _judged(work: Any, stage: str, limit: float, given: str) -> Outcome:
    outcome = Outcome("accepted")
    start = time.monotonic()
    try:
        with watched(stage):
            value = work()
    except FysymError as error:
        outcome.kind = "refused"
        outcome.seconds = time.monotonic() - start
        outcome.problem = _message_problem(error, given)
    except BaseException as error:  # whatever it is, it is what is looked for
        outcome.kind = "crashed"
        outcome.seconds = time.monotonic() - start
        outcome.problem = f"{type(error).__name__}: {str(error)[:300]}"
    else:
        outcome.seconds = time.monotonic() - start
        outcome.value = value
        if isinstance(value, sympy.Basic) and value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I):
            outcome.problem = "the expression is not finite and real"
        elif stage == "parse" and not isinstance(value, (sympy.Expr, str)):
            outcome.problem = f"the result is a {type(value).__name__}"
    outcome.over = outcome.seconds - limit
    if outcome.over > GRACE:
        outcome.problem = f"{outcome.seconds:.2f} s, the limit is {limit:g} s + {GRACE:g} s"
    return outcome


def _message_problem(error: FysymError, given: str) -> str | None:
    if not str(error).strip():
        return "an error without a message"
    if len(str(error)) > 5_000:
        return f"an error message of {len(str(error))} characters"
    if isinstance(error, ParseError) and not 0 <= error.position <= len(given):
        return f"a caret outside the text, at {error.position}"
    return None


def options(seed: Any, index: int, names: list[str]) -> dict[str, Any]:
    """params, deadline and name for compiling text number `index`, which has parameters of these names."""
    rng = random.Random(f"{seed}:options:{index}")
    params: dict[str, Any] = {}
    for n in names:
        spans = [f"{n} > 1", f"0 < {n} < 1", f"{n} >= 1", (1, 3), (None, 0), f"-1 <= {n} <= 1", f"{n} > 0"]
        if rng.random() < 0.9:
            params[n] = rng.choice(spans)
    if rng.random() < 0.05:
        odd = [*RANGES, None, 5, (1,), "x" * 50, b"alpha > 1", float("nan")]
        params[rng.choice([*NAMES, *ATTACKS])] = rng.choice(odd)
    name = rng.choice([None, None, "mine", *ATTACKS]) if rng.random() < 0.3 else None
    return {"params": params, "deadline": rng.choice([0.3, 0.3, 0.5, 1.0]), "name": name}


def regressions() -> list[dict[str, Any]]:
    """Texts that once went wrong: rows with `text` and what `compile` is given besides."""
    return [json.loads(line) for line in REGRESSIONS.read_text().splitlines()]


# Many texts, in child processes


@dataclass
class Tally:
    """What a run found."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[dict[str, Any]] = field(default_factory=list)
    slowest: dict[str, dict[str, Any]] = field(default_factory=dict)  # by stage
    memory: int = 0  # most bytes that a child took beyond what it started with

    def add(self, sums: dict[str, Any]) -> None:
        """What one child reported last."""
        self.counts.update(sums["counts"])
        self.memory = max(self.memory, sums["memory"])
        for stage, row in sums["slowest"].items():
            if stage not in self.slowest or row["over"] > self.slowest[stage]["over"]:
                self.slowest[stage] = row


def child(stage: str, seed: str, start: int, stop: int, clock: str) -> None:
    """Work through texts start to stop; report each that is notable on stdout, and all of them in sums."""
    faulthandler.enable()
    looks = watch()
    next(looks)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (pages + MEMORY, pages + MEMORY))
    with open(clock, "r+b") as file:
        shared = mmap.mmap(file.fileno(), 16)
    counts: Counter[str] = Counter()
    slowest: dict[str, Any] = {}

    def note(index: int, kind: str, given: str, outcome: Outcome, **more: Any) -> None:
        touched = next(looks)
        problem = outcome.problem or (f"something was run: {touched}" if touched else None)
        line = {"stage": kind, "index": index, "kind": outcome.kind, "problem": problem, "text": given, **more}
        line |= {"seconds": outcome.seconds, "over": outcome.over}
        counts[f"{kind} {outcome.kind}"] += 1
        if kind not in slowest or outcome.over > slowest[kind]["over"]:
            slowest[kind] = line
        if problem:
            print(json.dumps({"problem": line}), flush=True)

    def report() -> None:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
        print(json.dumps({"sums": {"counts": counts, "slowest": slowest, "memory": memory}}), flush=True)

    def compiled(index: int, given: str, more: dict[str, Any]) -> None:
        shared[:16] = struct.pack("qd", index, time.monotonic())
        outcome = check_compile(given, **more)
        note(index, "compile", given, outcome, options=repr(more))
        if outcome.value is not None:
            shared[:16] = struct.pack("qd", index, time.monotonic())
            note(index, "use", given, check_use(outcome.value, given), options=repr(more))

    if stage == "kept":
        fysym.compile("-t*log(t)")  # a first compilation spends its time on imports
    for index in range(start, stop):
        if stage != "parse" or index % 100 == 0:
            report()
        shared[:16] = struct.pack("qd", index, time.monotonic())
        if stage == "kept":
            row = {"params": {}, "deadline": 1.0, "name": None} | regressions()[index]
            compiled(index, row.pop("text"), {key: row[key] for key in ("params", "deadline", "name")})
            continue
        given = text(seed, index)
        outcome = check_parse(given)
        if stage == "parse":
            note(index, "parse", given, outcome)
            if index % 10 == 0:
                given = range_text(seed, index)
                note(index, "range", given, check_range(given))
        elif outcome.kind == "accepted" and sympy.Symbol("t") in outcome.value.free_symbols:
            names = sorted(symbol.name for symbol in outcome.value.free_symbols if symbol.name != "t")
            compiled(index, given, options(seed, index, names))
    report()
    os._exit(0)  # threads that could not be stopped do not matter any more


def run(stage: str, seed: Any, start: int, stop: int, tally: Tally, patience: float = 15.0) -> None:
    """Texts start to stop in one child, and a new one after a text that ended it or kept it for too long."""
    while start < stop:
        with tempfile.TemporaryDirectory() as folder:
            clock, found, trace = (Path(folder, name) for name in ("clock", "found", "trace"))
            clock.write_bytes(struct.pack("qd", start, time.monotonic() + 20))
            command = [*COMMAND, "--child", stage, str(seed), str(start), str(stop), str(clock)]
            with found.open("w") as stdout, trace.open("w") as stderr:
                process = subprocess.Popen(command, stdout=stdout, stderr=stderr, cwd=Path(__file__).parents[1])
            while process.poll() is None:
                time.sleep(0.05)
                index, since = struct.unpack("qd", clock.read_bytes())
                if time.monotonic() - since > patience:
                    process.send_signal(signal.SIGABRT)  # faulthandler then writes where every thread is
                    break
            code = process.wait()
            lines = list(map(json.loads, found.read_text().splitlines()))
            index, since = struct.unpack("qd", clock.read_bytes())
            stack = trace.read_text().partition("\nExtension modules")[0]
        sums = [line["sums"] for line in lines if "sums" in line]
        tally.problems += [line["problem"] for line in lines if "problem" in line]
        if sums:
            tally.add(sums[-1])
        if code == 0:
            return
        kind = "hung" if code == -signal.SIGABRT else "died"
        how = f"still running after {patience:g} s" if kind == "hung" else f"the process ended with code {code}"
        line = {"stage": stage, "index": index, "kind": kind, "problem": how, "stack": stack}
        line["text"] = regressions()[index]["text"] if stage == "kept" else text(seed, index)
        tally.problems.append(line)
        tally.counts[f"{stage} {kind}"] += 1
        start = index + 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Hostile texts, with a watchdog.")
    parser.add_argument("--count", type=int, default=200_000, metavar="N", help="texts to parse")
    parser.add_argument("--compiles", type=int, default=0, metavar="N", help="texts to compile as well")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--kept", action="store_true", help="also compile the texts that once went wrong")
    parser.add_argument("--from", type=int, default=0, metavar="I", dest="first", help="the first text of each kind")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        stage, seed, start, stop, clock = given.child
        child(stage, seed, int(start), int(stop), clock)
    tally = Tally()
    began = last = time.monotonic()

    shown = 0

    def progress(words: str) -> None:
        nonlocal last, shown
        for problem in tally.problems[shown:]:
            print(
                "VIOLATION",
                json.dumps({**problem, "stack": ""})[:2_000],
                problem.get("stack", ""),
                sep="\n",
                flush=True,
            )
        shown = len(tally.problems)
        if time.monotonic() - last > 10:
            last = time.monotonic()
            print(f"{last - began:6.0f} s  {words}, {shown} violations", flush=True)

    for start in range(given.first, given.first + given.count, 10_000):
        run("parse", given.seed, start, min(start + 10_000, given.first + given.count), tally)
        progress(f"{_done(tally, 'parse')} texts parsed")
    start = given.first
    while _done(tally, "compile") < given.compiles:
        run("compile", given.seed, start, start + 200, tally)
        start += 200
        progress(f"{_done(tally, 'compile')} texts compiled")
    if given.kept:
        run("kept", "", 0, len(regressions()), tally)
        progress("the kept texts compiled")
    for kind, count in sorted(tally.counts.items()):
        print(f"{kind}: {count}")
    for stage, row in tally.slowest.items():
        print(f"slowest {stage}: {row['seconds']:.2f} s, {row['over']:+.2f} s from its limit, {row['text'][:100]!r}")
    print(f"most memory: {tally.memory / 2**20:.0f} MiB beyond the start of a child")
    print(f"{len(tally.problems)} violations in {time.monotonic() - began:.0f} s")
    return 1 if tally.problems else 0


def _done(tally: Tally, stage: str) -> int:
    return sum(tally.counts[f"{stage} {kind}"] for kind in ("accepted", "refused", "crashed", "hung", "died"))


if __name__ == "__main__":
    sys.exit(main())
