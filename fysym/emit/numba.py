"""Emits a Program as the text of Numba kernels: one each for predictions, for losses and for derivatives.

What decides the kernel: q an exponential (closed form), a finite margin (only the scores within it are solved for), or
neither (the whole row). Where a scalar function has no vector code, `kernel` raises UnsupportedError and says which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ..deadline import run
from ..domains import SIMPLEX
from ..entropy import SLOPE
from ..errors import UnsupportedError
from ..program import Program, compiled
from ..rewrite import expm1, is_awkward, log1p, ndtr, quickly_cancelled, safe, wrightomega
from ..runtime.numba import SHORT
from . import numba_block as block
from . import numba_table
from . import numba_templates as text
from .printer import Table, assignments

VECTOR = Table(
    {
        sympy.exp: "vexp({0})",
        sympy.log: "vlog({0})",
        expm1: "vexpm1({0})",
        log1p: "vlog1p({0})",
        sympy.sin: "vsin({0})",
        sympy.cos: "vcos({0})",
        sympy.tan: "vtan({0})",
        sympy.asin: "vasin(vatmost(vatleast({0}, -1.0), 1.0))",
        sympy.acos: "vacos(vatmost(vatleast({0}, -1.0), 1.0))",
        sympy.atan: "vatan({0})",
        sympy.tanh: "vtanh({0})",
        sympy.erf: "verf({0})",
        sympy.erfc: "verfc({0})",
        ndtr: "vndtr({0})",
        wrightomega: "vwrightomega({0})",
    },
    {
        "sqrt": "vsqrt({0})",
        "cbrt": "vpow({0}, 0.3333333432674408, -9.934107462565104e-09)",
        "square": "vsquare({0})",
        "where": "vselect_gt({1}, {0}, {2}, {3})",
        "power": "vpow({0}, {2}, {3})",
        "clip": "vatleast({0}, 0.0)",
    },
)
# Powers of a rise: the simple ones lose digits only where the rounding of a score loses more.
NEAR_CUT = Table(VECTOR.functions, {**VECTOR.powers, "power": "vpown({0}, {1})"})
CHEAP = 12  # what q may cost for longer rows to be solved in blocks
# Rough costs of a vector instruction sequence, to choose among equal forms.
COSTS = {
    "vpow": 30, "vpown": 30, "vexp": 12, "vexpm1": 15, "vlog": 12, "vlog1p": 15, "vsin": 12, "vcos": 12, "vtan": 20,
    "vasin": 15, "vacos": 15, "vatan": 15, "vtanh": 20, "verf": 25, "verfc": 30, "vndtr": 30, "vsqrt": 5,
    "vwrightomega": 80, "/": 4,
}  # fmt: skip
SHIFT = {64: 900, 32: 100}
MOST_OPERATIONS = 30  # of g, for a second form of it to be looked for
T = sympy.Symbol("t", positive=True)
P = sympy.Symbol("p", positive=True)
Y = sympy.Symbol("Y", positive=True)
KINDS = ("predict", "label", "proportions", "jvp")
MARGINS = ("convex", "safe")  # families of entropies with a margin


@dataclass(frozen=True)
class Plan:
    """How the threshold is found: the family of the kernel, and why, in words."""

    family: str
    words: str


def plan(program: Program) -> Plan:
    """The family of the kernel; UnsupportedError where there is none."""
    ends = program.ends
    if program.domain != SIMPLEX:
        raise UnsupportedError(f"the domain is {program.domain}")
    if program.exponential is not None:
        return Plan("exponential", "closed form, one pass: q is an exponential")
    if program.kinks:
        raise UnsupportedError("h has kinks, where q is constant")
    if ends["value_low"] != 0.0 or ends["value_high"] != 0.0:
        raise UnsupportedError("h is unbounded")
    if math.isfinite(ends["slope_low"]) and math.isfinite(ends["rise_high"]):
        if ends["anchor"] != ends["slope_low"]:
            raise UnsupportedError("the cut-off is far below the other slopes")
        within = f"among the scores within the margin {ends['rise_high']:.6g} of the largest"
        within += "" if program.inverse is not None else ", q from a table of polynomials"
        if program.newton and ends["curvature_high"] > 0.0:
            return Plan("convex", f"monotone Newton (h''' >= 0, so q is convex) {within}")
        return Plan("safe", f"Newton kept in a bracket {within}")
    if program.inverse is None:
        return Plan(
            "solved",
            "Newton for the logarithm of the excess, over the whole row; q from a table and a Newton step of its own",
        )
    if rational(program.inverse.expr) is not None:
        return Plan("rational", "Newton for the logarithm of the excess; q is rational in exp(s), so one exp a score")
    return Plan("dense", "Newton for the logarithm of the excess, over the whole row")


def scratch(program: Program, kind: str, bits: int) -> tuple[int, int, bool]:
    """The bits of the floats that a kernel computes with, how many rows of them it works in besides a vector, and
    whether rows with few candidates need less."""
    pruned = plan(program).family in MARGINS
    if kind == "jvp":
        return bits, 3, False
    return 64 if pruned and is_steep(program) else bits, 3 if pruned else 0, pruned


def rational(expr: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr] | None:
    """(rate, R) when q(s) = R(exp(rate s)) with R rational."""
    rates = {sympy.diff(e.args[0], SLOPE) for e in expr.atoms(sympy.exp) if e.has(SLOPE)}
    if not rates or any(rate.free_symbols for rate in rates):
        return None
    rate = min((abs(rate) for rate in rates), key=float)
    found = in_exponential(expr, rate)
    return (rate, found) if found.is_rational_function(Y) else None


def in_exponential(expr: sympy.Expr, rate: sympy.Expr) -> sympy.Expr:
    """The expression in Y = exp(rate s), as one fraction where it is rational."""
    found = sympy.powsimp(sympy.expand_power_exp(expr).subs(SLOPE, sympy.log(Y) / rate))
    return quickly_cancelled(found) if found.is_rational_function(Y) else found


def is_steep(program: Program) -> bool:
    """Whether g'' vanishes at 0, so that tiny changes of a score move a probability far: a matter for double."""
    with np.errstate(all="ignore"):
        low, middle = compiled(program.curvature.expr, program.curvature.argument)(np.array([1e-12, 0.5])) + np.zeros(2)
    return bool(low < 1e-3 * middle)


def kernel(program: Program, kind: str, bits: int) -> str:
    """The text of one kernel, a module whose `run` it is."""
    try:
        return _kernel(program, kind, bits)
    except UnsupportedError:
        raise
    except Exception as error:  # an entropy that the tables or the rewriting cannot take
        raise UnsupportedError(f"its kernel could not be written ({type(error).__name__}: {error})") from error


def _kernel(program: Program, kind: str, bits: int) -> str:
    family = plan(program).family
    memory, bits = bits, scratch(program, kind, bits)[0]
    if bits == 32 and family in MARGINS and is_steep(program):
        raise UnsupportedError("q is infinitely steep at the cut-off: single precision is not enough")
    ends = program.ends
    huge = 1e290 if bits == 64 else 1e30
    places: dict[str, Any] = {
        "float": f"float{bits}",
        "memory": "POINTER" if bits == memory else "Narrow(float32)",
        "lanes": 512 // bits,
        "tiny": 2.0**-1022 if bits == 64 else 2.0**-126,
        "below": 1.0 - 2.0**-53 if bits == 64 else 1.0 - 2.0**-24,
        "huge": repr(huge),
        "store_nan": "store1(loss, i, NAN)" if kind in ("label", "proportions") else "",
    }
    constants = [f"ANCHOR = F({ends['anchor']!r})"]
    functions = ""
    if family == "exponential":
        solve = _exponential(program, kind, constants)
    elif family in MARGINS:
        solve = text.MARGIN
        places |= _margin(program, family, bits, memory, constants)
        label_from = "buf, 0, pbuf, 0, k, m, c, cl"
    else:
        solve, functions = text.DENSE, text.SOLVED_TOP if family == "solved" else text.AT_TOP
        places |= _dense(program, family, bits, constants)
        label_from = "x, src, out, base, d, m, c, cl"
    after, alone, each, last, taken = "", "", "", "", "pass"
    places |= {"block_sums": "", "term": text.LABEL_TERM}
    label_loss = "store1(loss, i, label_loss(terms, missing, tops, m, c, cl, at))"
    if kind in ("label", "proportions"):
        functions += text.VALUE
        places |= _value(program)
        start = "c = m - MARGIN\ncl = (m - c) - MARGIN\n"
        if kind == "label":
            functions += text.LOGARITHMS if family == "exponential" else text.LABEL
            if family == "exponential":
                each, last, label_loss = text.EXPONENTIAL_EACH, text.EXPONENTIAL_LAST, text.EXPONENTIAL_LABEL.strip()
            else:
                solve += text.LABEL_SUMS.format(label_from)
            after = text.AFTER_LABEL.replace("{label_loss}", label_loss)
            alone = text.AFTER_LABEL.replace("{label_loss}", "store1(loss, i, m - at)")
            if "block" in places:
                places["block_sums"], taken = block.SUMS, block.TAKEN
        else:
            functions += text.PROPORTIONS
            after = text.AFTER_PROPORTIONS
            alone = start + after
    elif kind == "jvp":
        functions += text.JVP
        constants.append(
            f"WEIGHT_HIGH = F({min(1.0 / ends['curvature_high'] if ends['curvature_high'] else huge, huge)!r})"
        )
        places["weight"] = assignments({"w": _weight_of(program)}, P, "p", VECTOR)
        after = "directional(out, base, y, wbuf, pbuf, d)"
        alone = "row_fill(out, base, d, ZERO)"
    places |= {"after": after, "alone": alone, "each": each, "last": last, "constants": constants}
    places |= {"solve_row": solve, "solve": text.ROW}
    if "block" in places:
        functions += block.BLOCK
        constants.append(f"SHORT = {places.get('short', SHORT)}")
        places |= {"solve": block.SHORT, "row": text.ROW, "taken": taken}
    return filled(text.HEAD + "\n{constants}\n" + functions + text.KERNEL, places)


def _exponential(program: Program, kind: str, constants: list[str]) -> str:
    assert program.exponential is not None
    rate, scale = program.exponential
    constants.append(f"RATE = F({rate!r})")
    threshold = ""
    if kind == "proportions":
        threshold = f"u = F((vlog1p(D(rest)) + D({math.log(scale)!r})) / D(RATE))\nc = m + u\ncl = (m - c) + u"
    return text.EXPONENTIAL.replace("{threshold}", threshold)


def _margin(program: Program, family: str, bits: int, memory: int, constants: list[str]) -> dict[str, Any]:
    """`bits` of what is computed with, `memory` of what comes in and goes out."""
    margin = program.ends["rise_high"]
    eps = 2.0**-52 if bits == 64 else 2.0**-23
    if family == "convex":
        with np.errstate(all="ignore"):
            start = 1.0 / float(compiled(program.curvature.expr, program.curvature.argument)(np.array([1e-300]))[0])
        jump = start * margin > 1e-9  # q' jumps at the cut: the last step cannot be taken in p
        tolerance = 4 * eps * margin if jump else (1e-12 if bits == 64 else 1e-4) * margin
        loose = tolerance if jump else (3e-7 if bits == 64 else 3e-3) * margin
    else:
        tolerance = loose = {(64, 64): 2e-15, (64, 32): 1e-9, (32, 32): 1e-6}[bits, memory]
    constants += [
        f"MARGIN = F({margin!r})",
        f"TOL = F({tolerance!r})",
        f"STALL = F({5 * tolerance!r})",
        f"LOOSE = F({loose!r})",
    ]
    q = _margin_inverse(program, bits, constants)
    steep = is_steep(program)
    places = {
        "q": q, "hasten": _hastened(program), "short": 32 if cost(q) <= CHEAP else 16,
        "block": block.MARGIN, "gather_block": block.CANDIDATES if steep else block.ALL,
        "store_block": block.CANDIDATES_STORE if steep else block.ALL_STORE,
    }  # fmt: skip
    if family == "convex":
        return places | {
            "bracket": text.CONVEX_BRACKET, "advance": text.CONVEX_ADVANCE, "block_bracket": block.CONVEX_BRACKET,
            "block_advance": block.CONVEX_ADVANCE, "block_last": block.CONVEX_LAST,
        }  # fmt: skip
    return places | {
        "bracket": text.SAFE_BRACKET, "advance": text.SAFE_ADVANCE, "block_bracket": block.SAFE_BRACKET,
        "block_advance": block.SAFE_ADVANCE, "block_last": "",
    }  # fmt: skip


def _hastened(program: Program) -> str:
    """A longer step than Newton's where q is a power of the rise, with an exponent above 1."""
    if program.inverse is None:
        return ""
    q = program.inverse.expr
    exponent = quickly_cancelled(SLOPE * sympy.diff(q, SLOPE) / q)
    if not (exponent.is_number and exponent > 1):
        return ""
    return text.HASTEN.replace("{rate}", f"F({float(1 + 1 / exponent) / 2!r})")


def _margin_inverse(program: Program, bits: int, constants: list[str]) -> list[str]:
    """Statements for p and w, in closed form where that has vector code, else from a table."""
    if program.inverse is not None:
        try:
            return _cheapest(program.inverse.expr, SLOPE, "b", sympy.S.One, program, NEAR_CUT)
        except UnsupportedError:
            pass
    table, statements = numba_table.statements(program, bits)
    constants.append(table)
    return statements


def _dense(program: Program, family: str, bits: int, constants: list[str]) -> dict[str, Any]:
    ends = program.ends
    least = 2.0**-1021 if bits == 64 else 2.0**-125
    inverse, coinverse = program.inverse, program.coinverse
    with np.errstate(all="ignore"):
        low = float(compiled(program.slope.expr, program.slope.argument)(np.array([least]))[0]) - ends["anchor"]
    low = 0.0 if math.isfinite(ends["slope_low"]) else low
    if program.corise is not None and math.isinf(ends["rise_high"]):
        with np.errstate(all="ignore"):
            left = -float(compiled(program.corise.expr, program.corise.argument)(np.array([least]))[0])
    else:
        left = -ends["rise_high"] if coinverse is None else -_where(compiled(coinverse.expr, SLOPE), least)
    left = max(left, -ends["rise_high"])
    if math.isfinite(ends["slope_low"]):  # q' jumps at the cut, where a last step of Newton's would be wrong
        tolerance = 1e-15 if bits == 64 else 3e-7
    else:
        tolerance = 1e-8 if bits == 64 else 3e-4
    constants += [
        f"TOL = F({tolerance!r})",
        f"LOW = F({low!r})",
    ]
    if inverse is None:
        return _solved(program, bits, constants, left)
    co = 1 - inverse.expr if coinverse is None else coinverse.expr
    slope = -sympy.diff(co, SLOPE) if coinverse is not None else sympy.diff(inverse.expr, SLOPE)
    newton, block_newton = (text.LOG_RATIO, block.LOG_RATIO) if coinverse is not None else (text.LOG_SUM, block.LOG_SUM)
    places: dict[str, Any] = {"left": repr(left), "newton": newton, "sure": "", "at_last": "", "tops": ""}
    if math.isinf(ends["slope_low"]):
        places |= {
            "block": block.DENSE, "gather_block": block.ALL, "store_block": block.ALL_STORE,
            "block_newton": block_newton,
        }  # fmt: skip
    found = rational(inverse.expr) if family == "rational" else None
    if found is not None:
        rate, ratio = found
        shift = SHIFT[bits]
        one = repr(2.0**shift)
        top_slope, top_missing = (in_exponential(part, rate) for part in (slope, co))
        number = float(rate)
        return places | {
            "padding": "ZERO",
            "prepared": f"vexpup((v - m) * {number!r})",
            "threshold": f"factor = F(vexp(D(u) * {-number!r} + D(ul) * {-number!r}) * {2.0**-shift!r})",
            "at_last": f"factor = F(D(factor) * vexp(D(step) * {-number!r}))",
            "argument": "b = e * factor",
            "q": _cheapest(ratio, Y, "b", rate * Y, program),
            "keep": "p = vatmost(p, ONE)",
            "largest": f"F({one})",
            "top": f"D(factor) * {one}",
            "block_threshold": f"factor = vexp(u * {-number!r}) * (vexp(ul * {-number!r}) * {2.0**-shift!r})",
            "block_top": f"factor * {one}",
            "at_top": assignments({"p": ratio, "w": top_slope, "e": top_missing}, Y, "r", VECTOR),
        }
    high = [f"b = vatmost(b, F({ends['rise_high']!r}))"] if math.isfinite(ends["rise_high"]) else []
    return places | {
        "padding": "NINF",
        "prepared": "v",
        "threshold": "",
        "argument": ["a = (e - c) - cl", "b = vatleast(a, LOW)", *high],
        "q": _cheapest(inverse.expr, SLOPE, "b", sympy.S.One, program),
        "keep": ["p = vatmost(vabove(a, LOW, p), ONE)", "w = vatmost(vwhere_pos(p, w), {huge})"],
        "largest": "m",
        "top": "-D(u) - D(ul)",
        "block_threshold": "",
        "block_top": "-u - ul",
        "at_top": assignments({"p": inverse.expr, "w": slope, "e": co}, SLOPE, "r", VECTOR),
    }  # fmt: skip


def _solved(program: Program, bits: int, constants: list[str], left: float) -> dict[str, Any]:
    """q without a closed form: below the middle from a table; only the largest score can be above it."""
    ends = program.ends
    assert program.rise and program.corise and program.cocurvature
    if math.isfinite(ends["slope_low"]):
        table, statements = numba_table.statements(program, bits, ends["rise_middle"])
    else:
        table, statements = numba_table.log_statements(program, bits)
        p = program.rise.argument
        polish = {"rise_p": program.rise.expr, "rate_p": _rate(program, p)}
        statements += assignments(polish, p, "p", VECTOR)
        statements += ["delta = (rise_p - b) / rate_p", "p = p * (1.0 - delta * (1.0 - 0.5 * delta))", "w = p / rate_p"]
    constants.append(table)
    lower = {
        "rise_t": program.rise.expr,
        "curve_t": program.curvature.expr.subs(program.curvature.argument, program.rise.argument),
    }
    upper = {
        "rise_t": program.corise.expr,
        "curve_t": program.cocurvature.expr.subs(program.cocurvature.argument, program.corise.argument),
    }
    places: dict[str, Any] = {
        "left": repr(left),
        "newton": text.LOG_RATIO,
        "sure": text.SURE,
        "padding": "NINF",
        "prepared": "v",
        "threshold": "",
        "argument": ["a = (e - c) - cl", f"b = vatmost(vatleast(a, LOW), F({ends['rise_middle']!r}))"],
        "q": statements,
        "keep": [
            "p = vatmost(vabove(a, LOW, p), ONE)",
            "w = vatmost(vwhere_pos(p, w), {huge})",
            f"w = vselect_gt(a, F({ends['rise_middle']!r}), ZERO, w)",
        ],
        "largest": "m",
        "top": "-D(u) - D(ul)",
        "at_last": "top, slope, missing = at_top(-D(u) - D(ul) - D(step))",
        "tops": "p = vselect_ge(e, m, top, p)",
        "lower": assignments(lower, program.rise.argument, "t", VECTOR),
        "upper": assignments(upper, program.corise.argument, "t", VECTOR),
        "middle": repr(ends["rise_middle"]),
        "high": _number(ends["rise_high"]),
        "lowest": _number(ends["slope_low"] - ends["anchor"]),
        "weight_high": repr(min(1.0 / ends["curvature_high"] if ends["curvature_high"] else 1e30, 1e30)),
    }  # fmt: skip
    if "np." in "".join([*statements, *places["lower"], *places["upper"]]):
        raise UnsupportedError("h' has no vector code")
    return places


def _rate(program: Program, p: sympy.Symbol) -> sympy.Expr:
    """p g''(p), multiplied out: g'' alone may be too large for a double where p is tiny."""
    product = p * program.curvature.expr.subs(program.curvature.argument, p)
    return product if is_awkward(product) else sympy.powsimp(sympy.expand(product))


def _number(value: float) -> str:
    return "np.inf" if value == math.inf else "-np.inf" if value == -math.inf else repr(value)


def _where(function: Any, least: float) -> float:
    """A rise at which 1 - q is about `least`."""
    low, high = 0.0, 1.0
    with np.errstate(all="ignore"):
        while float(function(np.array([high]))[0]) > least and high < 1e300:
            low, high = high, 2.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            if float(function(np.array([middle]))[0]) > least:
                low = middle
            else:
                high = middle
    return low


def _cheapest(
    inverse: sympy.Expr,
    argument: sympy.Symbol,
    name: str,
    factor: sympy.Expr,
    program: Program,
    table: Table = VECTOR,
) -> list[str]:
    """Statements for p and w = q', in the cheapest of a few equal forms; `factor` is d argument / ds."""
    slope = sympy.diff(inverse, argument) * factor
    forms = [slope, quickly_cancelled(slope), P * quickly_cancelled(slope / inverse), _weight_of(program)]
    found = []
    for form in forms:
        try:
            first = assignments({"p": inverse}, argument, name, table)
            if form.has(P):
                second = assignments({"w": form}, argument, name, table, {P: "p"})
                statements = first + [re.sub(r"\b([xy]\d+)\b", r"\1w", line) for line in second]
            else:
                statements = assignments({"p": inverse, "w": form}, argument, name, table)
        except UnsupportedError:
            continue
        if "np." not in "".join(statements):
            found.append(statements)
    if not found:
        raise UnsupportedError(f"q = {inverse} has no vector code")
    return min(found, key=cost)


def cost(statements: list[str]) -> int:
    """About how many instructions statements take."""
    joined = " ".join(line.split("=", 1)[1] for line in statements)
    calls = re.findall(r"\bv\w+|[-+*/]", joined)
    return sum(COSTS.get(call, 1) for call in calls)


def _weight_of(program: Program) -> sympy.Expr:
    """w = 1/g'' in p."""
    curvature = program.curvature.expr.subs(program.curvature.argument, P)
    forms = [1 / curvature, quickly_cancelled(1 / curvature), sympy.powsimp(1 / curvature)]
    return min(forms, key=lambda e: e.count_ops())


def _value(program: Program) -> dict[str, Any]:
    value = program.value.expr.subs(program.value.argument, P)
    inside = "p = vatmost(vatleast(p, TINY), BELOW)"
    vector = [inside, *assignments({"g": value}, P, "p", VECTOR)]
    if program.covalue is not None:
        co = assignments({"g": program.covalue.expr}, program.covalue.argument, "e", VECTOR)
    else:
        co = ["t = 1.0 - e", "if not t < 1.0:", "    return 0.0", *assignments({"g": value}, P, "t", VECTOR)]
    scalar = assignments({"g": value}, P, "t", VECTOR)
    for statements in (vector, co):
        if "np." in "".join(statements):
            raise UnsupportedError("g has no vector code")
    return {
        "value": vector,
        "scalar_value": scalar,
        "scalar_covalue": co,
        **_psi(program, vector),
    }


def _psi(program: Program, value: list[str]) -> dict[str, list[str]]:
    """s t - g(t), in t alone where t g' - g is cheaper than g and a sum of positive terms, which cannot cancel.

    Its terms c log(1 + k t) are one logarithm of a product for many t: the t sum to 1, so that it stays near 1.
    """
    positive = "psi = vwhere_pos(t, vatleast(psi, ZERO))"
    plain = {"psi": [*value, "psi = s * t - g", positive], "fresh": [], "logarithms": []}
    t = program.value.argument
    if program.value.expr.count_ops() > MOST_OPERATIONS:
        return plain

    def difference() -> sympy.Expr:
        g = program.value.expr.replace(log1p, lambda x: sympy.log(1 + x)).replace(expm1, lambda x: sympy.exp(x) - 1)
        return sympy.expand(quickly_cancelled(sympy.expand(t * sympy.diff(g, t) - g)))

    try:
        found = run(difference, seconds=1.0)
        terms = [sympy.lambdify(t, term, "math") for term in sympy.Add.make_args(found)]
        if not all(term(x) >= 0.0 for term in terms for x in (1e-9, 1e-3, 0.2, 0.5, 0.8, 0.999)):
            return plain
        products, rest = _split_logarithms(safe(found, t), t)
        statements = [value[0], *assignments({"psi": rest.subs(t, P)}, P, "p", VECTOR), positive]
        if rest == 0:
            statements = ["psi = vfull(xs, ZERO)"]
        if "np." in "".join(statements) or not cost(statements) < cost(value):
            return plain
    except Exception:  # no derivative, no code for it, or no time: only not cheaper
        return plain
    for i, (_, k) in enumerate(products):
        statements += [
            f"part = vselect_ge(a, m, ZERO, {k!r} * t)",
            f"product{i} = vfma(product{i}, part, product{i} + part)",
        ]
    return {
        "psi": statements,
        "fresh": [f"product{i} = vfull(xs, ZERO)" for i in range(len(products))],
        "logarithms": [f"f = f + {c!r} * vlog1p(product{i})" for i, (c, _) in enumerate(products)],
    }


def _split_logarithms(expr: sympy.Expr, t: sympy.Symbol) -> tuple[list[tuple[float, float]], sympy.Expr]:
    """(c, k) of each term c log1p(k t), and the sum of all other terms."""
    products, rest = [], sympy.S.Zero
    for term in sympy.Add.make_args(expr):
        c, body = term.as_independent(t, as_Add=False)
        k = body.args[0].coeff(t) if isinstance(body, log1p) else sympy.S.Zero
        if k != 0 and body.args[0] == k * t and -1 <= k <= 16:
            products.append((float(c), float(k)))
        else:
            rest += term
    return products, rest


def filled(template: str, places: Mapping[str, Any]) -> str:
    """The template with each {place} replaced; lines keep the indentation of the place."""
    pattern = re.compile(r"^( *)\{(\w+)\}$", re.M)

    def block(match: re.Match[str]) -> str:
        value = places[match[2]]
        lines = value.strip("\n").split("\n") if isinstance(value, str) else value
        return "\n".join(match[1] + line for line in lines if line.strip())

    while pattern.search(template):
        template = pattern.sub(block, template)
    return re.sub(r"\{(\w+)\}", lambda match: str(places[match[1]]), template)
