# mypy: disable-error-code="untyped-decorator"
"""Numba types for vectors of floats, with arithmetic, functions, masked memory access and reductions.

A kernel written with them is vector code as it stands: it leaves nothing to LLVM's loop vectoriser. Numbers take the
precision of the vector they meet. Kernels must not be compiled with `fastmath`, which would rewrite these instructions.
"""

from __future__ import annotations

import inspect
import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from .vector_math import (
    F32,
    F64,
    I32,
    I64,
    V,
    above,
    absolute,
    acos,
    asin,
    atan,
    atleast,
    atmost,
    cos,
    declare,
    erf,
    erfc,
    exp,
    expm1,
    expn,
    expup,
    floor,
    fma,
    larger,
    log,
    log1p,
    ndtr,
    power,
    pown,
    select_ge,
    select_gt,
    sin,
    smaller,
    sqrt,
    square,
    tan,
    tanh,
    where_pos,
    wrightomega,
)

# -- emitted from here --


class Vec(types.Type):
    """A Numba type: one 64-byte vector of floats, 16 x float32 or 8 x float64.

    One AVX-512 register, two AVX2 ones, four NEON or SSE ones: LLVM splits it as the machine needs.
    """

    def __init__(self, elem: Any) -> Any:
        self.elem = elem
        self.lanes = 512 // elem.bitwidth
        super().__init__(name=f"Vec({elem})")


register_model(Vec)(
    type(
        "VecModel",
        (models.PrimitiveModel,),
        {
            "__init__": lambda self, dmm, fe: models.PrimitiveModel.__init__(
                self, dmm, fe, ir.VectorType(F64 if fe.elem == types.float64 else F32, fe.lanes)
            )
        },
    )
)

vec32, vec64 = Vec(types.float32), Vec(types.float64)


def _vec(elem: Any) -> Any:
    return vec64 if elem == types.float64 else vec32


def _raise(context: Any, builder: Any, value: Any, have: Any, want: Any) -> Any:
    """A number (float, int or Vec) as a value of type `want` (Float or Vec)."""
    if have == want:
        return value
    elem = want.elem if isinstance(want, Vec) else want
    value = context.cast(builder, value, have, elem)
    if not isinstance(want, Vec):
        return value
    t = ir.VectorType(value.type, want.lanes)
    one = builder.insert_element(ir.Constant(t, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(
        one, ir.Constant(t, ir.Undefined), ir.Constant(ir.VectorType(I32, want.lanes), [0] * want.lanes)
    )


def _common(ts: Any) -> Any:
    """The type that a mix of vectors, floats and literals has: a vector wins, and scalars take its precision."""
    ts = [types.unliteral(t) for t in ts]
    vecs = [t for t in ts if isinstance(t, Vec)]
    if vecs:
        return (
            vecs[0]
            if all(t == vecs[0] for t in vecs) and all(isinstance(t, (Vec, types.Float, types.Integer)) for t in ts)
            else None
        )
    if all(t == types.float32 for t in ts):
        return types.float32
    if all(isinstance(t, (types.Float, types.Integer)) for t in ts):
        return types.float64
    return None


def _wrap(builder: Any, value: Any, t: Any) -> Any:
    return V(builder, value, 64 if t in (types.float64, vec64) else 32, t.lanes if isinstance(t, Vec) else 0)


def _emit(fn: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vs = [
            _wrap(builder, _raise(context, builder, a, t, sig.return_type), sig.return_type)
            for a, t in zip(args, sig.args)
        ]
        return fn(*vs).v

    return codegen


def _function(fn: Any) -> Any:
    """A function on V as a Numba function of vectors, numbers, or both."""
    codegen = _emit(fn)

    def typed(*ts: Any) -> Any:
        ts = tuple(types.unliteral(t) for t in ts)
        t = _common(ts)
        return None if t is None else (t(*ts), codegen)

    def one(typingctx: Any, x: Any) -> Any:
        return typed(x)

    def two(typingctx: Any, x: Any, y: Any) -> Any:
        return typed(x, y)

    def three(typingctx: Any, x: Any, y: Any, z: Any) -> Any:
        return typed(x, y, z)

    def four(typingctx: Any, x: Any, y: Any, z: Any, t: Any) -> Any:
        return typed(x, y, z, t)

    typer = (one, two, three, four)[len(inspect.signature(fn).parameters) - 1]
    typer.__name__ = fn.__name__
    typer.__doc__ = fn.__doc__
    return intrinsic(typer)


# + - * / and unary minus on vectors, with scalars and literals taken to the vector's precision.
for _op, _fn in (
    (operator.add, V.__add__),
    (operator.sub, V.__sub__),
    (operator.mul, V.__mul__),
    (operator.truediv, V.__truediv__),
):

    def _register(op: Any, fn: Any) -> Any:
        class Template(AbstractTemplate):
            key = op

            def generic(self, args: Any, kws: Any) -> Any:
                args = tuple(types.unliteral(t) for t in args)
                if len(args) == 2 and any(isinstance(t, Vec) for t in args):
                    t = _common(args)
                    return None if t is None else signature(t, *args)

        infer_global(op)(Template)
        for have in ((Vec, Vec), (Vec, types.Number), (types.Number, Vec)):
            lower_builtin(op, *have)(_emit(fn))

    _register(_op, _fn)


@infer_global(operator.neg)
class _Neg(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Vec):
            return signature(args[0], args[0])


lower_builtin(operator.neg, Vec)(_emit(V.__neg__))

vexp = _function(exp)
vexpn = _function(expn)
vexpup = _function(expup)
vexpm1 = _function(expm1)
vlog = _function(log)
vlog1p = _function(log1p)
vpow = _function(power)
vpown = _function(pown)
vsin = _function(sin)
vcos = _function(cos)
vtan = _function(tan)
vasin = _function(asin)
vacos = _function(acos)
vatan = _function(atan)
vtanh = _function(tanh)
verf = _function(erf)
verfc = _function(erfc)
vndtr = _function(ndtr)
vwrightomega = _function(wrightomega)
vsqrt = _function(sqrt)
vsquare = _function(square)
vfma = _function(fma)
vwhere_pos = _function(where_pos)
vabove = _function(above)
vatleast = _function(atleast)
vatmost = _function(atmost)
vselect_gt = _function(select_gt)
vselect_ge = _function(select_ge)
vmax = _function(larger)
vmin = _function(smaller)
vfloor = _function(floor)
vabs = _function(absolute)


# Memory: flat C-contiguous arrays, index = element.  No bounds are checked.


class Narrow(types.CPointer):
    """A pointer to float32 that is computed with in double: loads widen, stores round."""


register_model(Narrow)(models.PointerModel)


def _elem(arr: Any) -> Any:
    """The type of an element in arithmetic."""
    return types.float64 if isinstance(arr, Narrow) else arr.dtype


def _stored(context: Any, arr: Any, vt: Any) -> Any:
    """The LLVM type of a vector in memory."""
    return ir.VectorType(context.get_value_type(arr.dtype), vt.lanes)


def _fit(builder: Any, value: Any, t: Any) -> Any:
    """A float or a vector of floats in the precision of the LLVM type t."""
    if value.type == t:
        return value
    wider = (t.element if isinstance(t, ir.VectorType) else t) == F64
    return builder.fpext(value, t) if wider else builder.fptrunc(value, t)


def _data(context: Any, builder: Any, arrtype: Any, arr: Any) -> Any:
    """The data pointer of an array, or a raw pointer (types.CPointer) as it is."""
    if isinstance(arrtype, types.CPointer):
        return arr
    return context.make_array(arrtype)(context, builder, arr).data


def _address(context: Any, builder: Any, arrtype: Any, arr: Any, index: Any) -> Any:
    return builder.gep(_data(context, builder, arrtype, arr), [index])


@intrinsic
def load1(typingctx: Any, arr: Any, i: Any) -> Any:
    """One element; works on raw pointers too."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = builder.load(_address(context, builder, sig.args[0], args[0], args[1]))
        return _fit(builder, value, context.get_value_type(sig.return_type))

    return _elem(arr)(arr, types.intp), codegen


@intrinsic
def store1(typingctx: Any, arr: Any, i: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = _fit(builder, args[2], context.get_value_type(arr.dtype))
        builder.store(value, _address(context, builder, sig.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return types.void(arr, types.intp, _elem(arr)), codegen


@intrinsic
def offset(typingctx: Any, pointer: Any, i: Any) -> Any:
    """pointer + i elements"""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.intp), codegen


@intrinsic
def fetch_add(typingctx: Any, arr: Any, i: Any, value: Any) -> Any:
    """Adds to an element that threads share, and gives what it was."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _address(context, builder, sig.args[0], args[0], args[1]), args[2], "seq_cst")

    return arr.dtype(arr, types.intp, arr.dtype), codegen


@intrinsic
def load_now(typingctx: Any, arr: Any, i: Any) -> Any:
    """One element of what other threads may be changing."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load_atomic(_address(context, builder, sig.args[0], args[0], args[1]), "seq_cst", 8)

    return arr.dtype(arr, types.intp), codegen


def _lane_mask(builder: Any, count: Any, lanes: Any) -> Any:
    """<lanes x i1>: lane < count"""
    it = ir.VectorType(I32, lanes)
    n = builder.trunc(count, I32)
    one = builder.insert_element(ir.Constant(it, ir.Undefined), n, ir.Constant(I32, 0))
    n = builder.shuffle_vector(one, ir.Constant(it, ir.Undefined), ir.Constant(it, [0] * lanes))
    return builder.icmp_signed("<", ir.Constant(it, list(range(lanes))), n)


@intrinsic
def vload(typingctx: Any, arr: Any, i: Any) -> Any:
    vt = _vec(_elem(arr))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        p = _address(context, builder, sig.args[0], args[0], args[1])
        at = builder.bitcast(p, _stored(context, arr, vt).as_pointer())
        return _fit(builder, builder.load(at, align=arr.dtype.bitwidth // 8), context.get_value_type(vt))

    return vt(arr, types.intp), codegen


@intrinsic
def vloadn(typingctx: Any, arr: Any, i: Any, n: Any, fill: Any) -> Any:
    """The first n lanes from memory, the others `fill`."""
    vt = _vec(_elem(arr))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = _stored(context, arr, vt)
        p = builder.bitcast(_address(context, builder, sig.args[0], args[0], args[1]), t.as_pointer())
        mask = _lane_mask(builder, args[2], vt.lanes)
        other = _fit(builder, _raise(context, builder, args[3], sig.args[3], vt), t)
        fn = declare(builder, f"llvm.masked.load.v{vt.lanes}f{arr.dtype.bitwidth}.p0", t, [p.type, mask.type, t])
        return _fit(builder, builder.call(fn, [p, mask, other]), context.get_value_type(vt))

    return vt(arr, types.intp, types.intp, types.unliteral(fill)), codegen


@intrinsic
def vstore(typingctx: Any, arr: Any, i: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        p = _address(context, builder, sig.args[0], args[0], args[1])
        value = _fit(builder, args[2], _stored(context, arr, v))
        builder.store(value, builder.bitcast(p, value.type.as_pointer()), align=arr.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(arr, types.intp, v), codegen


@intrinsic
def vstoren(typingctx: Any, arr: Any, i: Any, v: Any, n: Any) -> Any:
    """Stores the first n lanes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = _fit(builder, args[2], _stored(context, arr, v))
        p = builder.bitcast(_address(context, builder, sig.args[0], args[0], args[1]), value.type.as_pointer())
        mask = _lane_mask(builder, args[3], v.lanes)
        name = f"llvm.masked.store.v{v.lanes}f{arr.dtype.bitwidth}.p0"
        fn = declare(builder, name, ir.VoidType(), [value.type, p.type, mask.type])
        builder.call(fn, [value, p, mask])
        return context.get_dummy_value()

    return types.void(arr, types.intp, v, types.intp), codegen


@intrinsic
def vfull(typingctx: Any, like: Any, x: Any) -> Any:
    """All lanes x, as a vector of the array's (or vector's) element type."""
    vt = like if isinstance(like, Vec) else _vec(_elem(like))
    x = types.unliteral(x)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _raise(context, builder, args[1], sig.args[1], vt)

    return vt(like, x), codegen


def _reduction(name: Any, ordered: Any) -> Any:
    def typer(typingctx: Any, v: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            e = args[0].type.element
            full = f"llvm.vector.reduce.{name}.v{sig.args[0].lanes}f{sig.args[0].elem.bitwidth}"
            if ordered:
                fn = declare(builder, full, e, [e, args[0].type])
                return builder.call(fn, [ir.Constant(e, -0.0), args[0]], fastmath=("reassoc",))
            fn = declare(builder, full, e, [args[0].type])
            return builder.call(fn, [args[0]], fastmath=("nnan", "nsz"))  # the accumulators of vmax are never NaN

        return v.elem(v), codegen

    return intrinsic(typer)


vsum = _reduction("fadd", True)
vmaxall = _reduction("fmax", False)


@intrinsic
def vcompress(typingctx: Any, arr: Any, k: Any, v: Any, bits_from: Any, thr: Any) -> Any:
    """Writes the lanes of v where NOT (bits_from < thr) one after the other to arr[k:], and returns how many.

    A NaN counts as above.  A whole vector is written: arr needs one vector of room.  llvm.vector.compress is one
    instruction with AVX-512 and a short branch-free sequence elsewhere.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vt = sig.args[2]
        t = args[2].type
        mask = builder.fcmp_unordered(">=", args[3], _raise(context, builder, args[4], sig.args[4], sig.args[3]))
        kind = "i32" if isinstance(vt, IVec) else f"f{vt.elem.bitwidth}"
        fn = declare(builder, f"llvm.experimental.vector.compress.v{vt.lanes}{kind}", t, [t, mask.type, t])
        packed = builder.call(fn, [args[2], mask, ir.Constant(t, ir.Undefined)])
        p = _address(context, builder, sig.args[0], args[0], args[1])
        builder.store(packed, builder.bitcast(p, t.as_pointer()), align=4)
        word = builder.bitcast(mask, ir.IntType(vt.lanes))
        return builder.ctpop(builder.zext(word, I64))

    return types.intp(arr, types.intp, v, bits_from, types.unliteral(thr)), codegen


@intrinsic
def vany(typingctx: Any, a: Any, b: Any, c: Any, d: Any, thr: Any) -> Any:
    """Whether any lane of four vectors is NOT < thr (NaN counts)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = _raise(context, builder, args[4], sig.args[4], sig.args[0])
        ms = [builder.fcmp_unordered(">=", v, t) for v in args[:4]]
        m = builder.or_(builder.or_(ms[0], ms[1]), builder.or_(ms[2], ms[3]))
        word = builder.bitcast(m, ir.IntType(a.lanes))
        return builder.icmp_unsigned("!=", word, ir.Constant(word.type, 0))

    return types.boolean(a, a, a, a, types.unliteral(thr)), codegen


class IVec(types.Type):
    """int32 lane numbers beside a Vec of the same number of lanes."""

    def __init__(self, lanes: Any) -> Any:
        self.lanes = lanes
        super().__init__(name=f"IVec({lanes})")


register_model(IVec)(
    type(
        "IVecModel",
        (models.PrimitiveModel,),
        {"__init__": lambda self, dmm, fe: models.PrimitiveModel.__init__(self, dmm, fe, ir.VectorType(I32, fe.lanes))},
    )
)


@intrinsic
def vindex(typingctx: Any, like: Any, i: Any) -> Any:
    """i, i + 1, ... as int32 lanes beside the vector `like`."""
    out = IVec(like.lanes)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        t = ir.VectorType(I32, like.lanes)
        n = builder.trunc(args[1], I32)
        one = builder.insert_element(ir.Constant(t, ir.Undefined), n, ir.Constant(I32, 0))
        n = builder.shuffle_vector(one, ir.Constant(t, ir.Undefined), ir.Constant(t, [0] * like.lanes))
        return builder.add(n, ir.Constant(t, list(range(like.lanes))))

    return out(like, types.intp), codegen


@intrinsic
def vtable(typingctx: Any, table: Any, index: Any, offset: Any) -> Any:
    """table[int(index[l]) + offset]: a gather; index is a Vec of small non-negative whole numbers."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vt = sig.args[1]
        it = ir.VectorType(I32, vt.lanes)
        idx = builder.fptosi(args[1], it)
        data = _data(context, builder, sig.args[0], args[0])
        # llvmlite has no vector getelementptr: add up the addresses as integers
        wide = ir.VectorType(I64, vt.lanes)
        base = builder.ptrtoint(builder.gep(data, [args[2]]), I64)
        one = builder.insert_element(ir.Constant(wide, ir.Undefined), base, ir.Constant(I32, 0))
        base = builder.shuffle_vector(one, ir.Constant(wide, ir.Undefined), ir.Constant(it, [0] * vt.lanes))
        size = ir.Constant(wide, [vt.elem.bitwidth // 8] * vt.lanes)
        at = builder.add(base, builder.mul(builder.sext(idx, wide), size))
        ptrs = builder.inttoptr(at, ir.VectorType(data.type, vt.lanes))
        mt = ir.VectorType(ir.IntType(1), vt.lanes)
        t = args[1].type
        fn = declare(builder, f"llvm.masked.gather.v{vt.lanes}f{vt.elem.bitwidth}.v{vt.lanes}p0", t, [ptrs.type, mt, t])
        return builder.call(fn, [ptrs, ir.Constant(mt, [1] * vt.lanes), ir.Constant(t, ir.Undefined)])

    return index(table, index, types.intp), codegen
