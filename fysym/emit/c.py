"""Emits a Program as one C99 file: header comment, scalar functions, and the kernel of runtime/kernel.c."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from types import SimpleNamespace
from typing import Any

import numpy as np
import sympy

from ..domains import SIMPLEX, Domain
from ..program import Program, Scalar, compiled
from ..rewrite import expm1, log1p, ndtr, wrightomega
from ..runtime.numpy_domain import reach
from ..runtime.numpy_inverse import trusted
from .printer import Table, lines

PLAIN = "exp log sin cos tan atan sinh cosh tanh asinh erf erfc"
FUNCTIONS: Mapping[Any, str] = {
    **{getattr(sympy, name): name + "({0})" for name in PLAIN.split()},
    expm1: "expm1({0})",
    log1p: "log1p({0})",
    sympy.asin: "asin(fmin(fmax({0}, -1.0), 1.0))",
    sympy.acos: "acos(fmin(fmax({0}, -1.0), 1.0))",
    sympy.acosh: "acosh(fmax({0}, 1.0))",
    sympy.atanh: "atanh(fmin(fmax({0}, -1.0), 1.0))",
    sympy.gamma: "tgamma({0})",
    sympy.loggamma: "lgamma({0})",
    sympy.erfcinv: "inverse_erfc({0})",
    ndtr: "0.5 * erfc(-0.7071067811865476 * ({0}))",
    wrightomega: "wright_omega({0})",
}
POWERS: Mapping[str, str] = {
    "sqrt": "sqrt({0})",
    "cbrt": "cbrt({0})",
    "square": "square({0})",
    "power": "pow({0}, {1})",
    "clip": "fmax({0}, 0.0)",
    "where": "({0} < {1} ? {2} : {3})",
}
TABLE = Table(FUNCTIONS, POWERS)

# Functions that C99 lacks, put in where they are used.
HELPERS = {
    "square": """static double square(double x) { return x * x; }
""",
    "wright_omega": """/* The solution w of w + log(w) = z. */
static double wright_omega(double z) {
    double w = z < -2.0 ? exp(z) : (z > 2.0 ? z - log(z) : exp(0.6 * (z - 1.0)));
    int k;
    if (z < -700.0 || z > 1e18) return w;
    for (k = 0; k < 6; k++) {
        double r = z - w - log(w), a = 2.0 * (1.0 + w) * (1.0 + w + 2.0 / 3.0 * r);
        w *= 1.0 + r / (1.0 + w) * (a - r) / (a - 2.0 * r);
    }
    return w;
}
""",
    "inverse_erfc": """/* The solution y of erfc(y) = x, by Newton's method on log erfc. */
static double inverse_erfc(double x) {
    double z = x > 1.0 ? 2.0 - x : x, y;
    int k;
    if (!(z > 0.0)) return x >= 2.0 ? -INFINITY : INFINITY;
    y = z < 0.1 ? sqrt(-log(z)) : 0.886226925452758 * (1.0 - z);
    for (k = 0; k < 60; k++) {
        double tail = erfc(y), step;
        if (!(tail > 0.0)) { y *= 0.99; continue; }
        step = (z < 0.1 ? log(tail / z) * tail : tail - z) * 0.886226925452758 * exp(y * y);
        y += step;
        if (fabs(step) <= 1e-17 * fabs(y)) break;
    }
    return x > 1.0 ? -y : y;
}
""",
}

USAGE = """
{domain}

void fy_predict(const double *theta, double *p, size_t rows, size_t classes);
    The predictions p (rows x classes, contiguous) for scores theta.
void fy_value_and_grad(const double *theta, const double *y, const long *labels, double *loss, double *grad,
                       size_t rows, size_t classes);
    The loss of each row and its gradient p - y. {targets}
fy_predictf and fy_value_and_gradf are the same for float; they compute in double.

All functions are re-entrant, allocate nothing and need only libm. Compile with -lm; with -fopenmp rows run in parallel.
With -DFY_SELF_CHECK this file is a program that compares predictions with values known to 40 digits.
"""

EITHER = """Targets are y (rows x classes: {values}) with
    labels = NULL, or labels (one of 0 .. classes - 1 a row, the coordinate that is 1) with y = NULL."""
ONLY = """Targets are y (rows x classes: numbers from 0 to 1
    with the sum {total}) with labels = NULL; the losses of labels are NaN."""
ON_SIMPLEX = """\
The domain is the simplex: p_j >= 0, and p sums to 1. A score of -inf is a mask, scores of +inf share all of the mass;
NaN, or nothing but masks, makes a row NaN."""
WITH_TOTAL = """\
The domain is [0, 1] for each coordinate, and p sums to {total}. A score of -inf is a mask, scores of +inf come first:
they have p = 1, or share the total. As many classes as the total have p = 1 each; fewer, or NaN, make a row NaN."""
BY_ITSELF = """\
The domain is {interval} for each coordinate by itself: p_j = q(theta_j). Scores of -inf and +inf are at the ends of
the interval; NaN stays in its coordinate, and makes the loss of its row NaN."""

SELF_CHECK = """
#ifdef FY_SELF_CHECK
#include <stdio.h>

static const double CHECKS[][{width}] = {{ /* how far off a prediction may be, scores, the prediction */
{rows}
}};
static const size_t CLASSES[] = {{ {classes} }};

int main(void) {{
    size_t k, j, count = sizeof(CLASSES) / sizeof(CLASSES[0]);
    for (k = 0; k < count; k++) {{
        size_t d = CLASSES[k];
        double allowed = CHECKS[k][0], p[{most}], grad[{most}], y[{most}], loss, none, size = 1.0, wanted = 0.0;
        const double *theta = CHECKS[k] + 1, *expected = theta + d;
        for (j = 0; j < d; j++) {{ /* the target has the entropy of the prediction, so the loss is <theta, p - y> */
            y[j] = expected[d - 1 - j];
            wanted += theta[j] * (expected[j] - y[j]);
            size += fabs(theta[j] * (expected[j] - y[j])) + 2.0 * fabs(value(y[j]));
        }}
        fy_predict(theta, p, 1, d);
        fy_value_and_grad(theta, expected, NULL, &none, grad, 1, d);
        fy_value_and_grad(theta, y, NULL, &loss, grad, 1, d);
        for (j = 0; j < d; j++) {{
            double off = fabs(grad[j] - (p[j] - y[j]));
            if (!(fabs(p[j] - expected[j]) <= allowed) || !(off <= 1e-15 * (1.0 + fabs(p[j])))) {{
                printf("class %zu of check %zu: %.17g, not %.17g\\n", j, k, p[j], expected[j]);
                return 1;
            }}
        }}
        if (!(fabs(loss - wanted) <= 1e-12 * size) || !(none >= 0.0 && none <= 1e-12 * size)) {{
            printf("check %zu: the loss is %.17g, not %.17g; that of the prediction %.17g\\n", k, loss, wanted, none);
            return 1;
        }}
#ifdef TOTAL
        for (j = 0, size = 0.0; j < d; j++) size += p[j];
        if (!(fabs(size - TOTAL) <= 1e-14 * fmax(1.0, TOTAL))) {{
            printf("check %zu: the sum is %.17g\\n", k, size);
            return 1;
        }}
#endif
    }}
    printf("self-check passed: %zu predictions agree with values known to 40 digits\\n", count);
    return 0;
}}
#endif
"""


def source(program: Program, header: Sequence[str], checks: Sequence[tuple[Any, Any, float]]) -> str:
    """The text of a C99 file; UnsupportedError where a function of the entropy has no C code.

    `checks` are scores, the prediction to expect and how far from it code may be.
    """
    functions = _functions(program)
    helpers = [text for name, text in HELPERS.items() if f"{name}(" in functions]
    kernel = resources.files("fysym.runtime").joinpath("kernel.c").read_text(encoding="utf-8")
    comment = "\n".join(f" * {_comment(line)}".rstrip() for line in [*header, *_usage(program.domain).splitlines()])
    return "\n".join(
        [
            f"/*\n{comment}\n */\n",
            "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n",
            *_definitions(program),
            "",
            *helpers,
            functions,
            kernel,
            _self_check(checks),
        ]
    )


def _self_check(checks: Sequence[tuple[Any, Any, float]]) -> str:
    rows = [[allowed, *theta, *expected] for theta, expected, allowed in checks]
    classes = [len(theta) for theta, _, _ in checks]
    if not rows:
        return ""
    return SELF_CHECK.format(
        width=max(map(len, rows)),
        rows=",\n".join("    {" + ", ".join(map(number, row)) + "}" for row in rows),
        classes=", ".join(map(str, classes)),
        most=max(classes),
    )


def number(value: float) -> str:
    """A double as a C constant."""
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return f"({value!r})" if value < 0 else repr(value)


def _comment(line: str) -> str:
    """Anything a user typed, made safe inside a comment."""
    plain = "".join(c if c.isprintable() else " " for c in line)
    for mark in ("*/", "/*", "??", "\\"):  # ends or starts a comment, starts a trigraph, joins lines
        plain = plain.replace(mark, " ".join(mark) + " ")
    return plain


def _usage(domain: Domain) -> str:
    """How to call the functions, and the conventions of the domain."""
    if domain == SIMPLEX:
        words, targets = ON_SIMPLEX, EITHER.format(values="proportions")
    elif domain.total is not None:
        words, targets = WITH_TOTAL.format(total=f"{domain.total:g}"), ONLY.format(total=f"{domain.total:g}")
    else:
        low, high = ("(" if math.isinf(domain.low) else "["), (")" if math.isinf(domain.high) else "]")
        interval = low + domain.interval[1:-1] + high
        words, targets = BY_ITSELF.format(interval=interval), EITHER.format(values=f"numbers in {interval}")
    return USAGE.format(domain=words, targets=targets)


def _definitions(program: Program) -> list[str]:
    """What the kernel is told about the domain and the ends of the interval."""
    domain = program.domain
    numbers = {
        "LOW": domain.low,
        "HIGH": domain.high,
        "FIRST": math.nextafter(domain.low, 0.0) if domain.low else sys.float_info.min,
        "LAST": math.nextafter(domain.high, 0.0),
        **{name.upper(): value for name, value in program.ends.items()},
    }
    numbers["LOWEST_RISE"], numbers["HIGHEST_RISE"] = _reach(program)
    if domain.total is not None:
        numbers["TOTAL"] = domain.total
    if _is_softmax(program):
        assert program.exponential is not None
        numbers["RATE"], numbers["SCALE"] = program.exponential
    flags = {
        "BOUNDED": domain.bounded,
        "SIMPLEX": domain == SIMPLEX,
        "HAS_COVALUE": program.covalue is not None,
    }
    return [
        *(f"#define {name} {number(value)}" for name, value in numbers.items()),
        f"#define NEWTON {int(program.newton and domain == SIMPLEX)} /* whether no step goes beyond the root */",
        *(f"#define {name}" for name, holds in flags.items() if holds),
    ]


def _reach(program: Program) -> tuple[float, float]:
    """Rises at and beyond which q is at the lower and the upper end of the interval, to the last digit: numpy_domain
    says how these are found.
    """
    ends = program.ends
    if not program.domain.bounded:
        return ends["slope_low"] - ends["anchor"], ends["rise_high"]
    slope = compiled(program.slope.expr, program.slope.argument)
    with np.errstate(all="ignore"):
        return reach(SimpleNamespace(**ends, slope=slope))


def _is_softmax(program: Program) -> bool:
    """Whether the threshold has a closed form."""
    return program.exponential is not None and program.domain == SIMPLEX


def _functions(program: Program) -> str:
    texts = [_function("entropy_value", program.value)]
    if program.covalue is not None:
        texts.append(_function("entropy_covalue", program.covalue))
    if _is_softmax(program):
        return "\n".join(texts)
    has_total, numeric, line = program.domain.total is not None, program.inverse is None, not program.domain.bounded
    if has_total or numeric or line:
        texts.append(_function("entropy_curvature", program.curvature))
    if has_total or line:
        texts.append(_function("entropy_slope", program.slope))
    if has_total:
        choice = "1.0 / entropy_curvature(t)"
        for at, _, _ in program.kinks:
            choice = f"t == {at!r} ? 0.0 : {choice}"
        texts.append(f"static double entropy_weight(double t) {{ return {choice}; }}\n")
    if program.inverse is None:
        texts.append(_numeric_inverse(program) if program.domain.bounded else _line_inverse(program))
        return "\n".join(texts)
    texts.append(_function("entropy_inverse", program.inverse))
    if program.coinverse is not None:
        texts.append(_function("entropy_coinverse", program.coinverse))
    elif program.domain.bounded:
        texts.append("static double entropy_coinverse(double s) { return 1.0 - entropy_inverse(s); }\n")
    return "\n".join(texts)


def _function(name: str, scalar: Scalar) -> str:
    *body, last = lines(scalar.expr, scalar.argument, "x", TABLE)
    statements = [*(f"const double {line};" for line in body), f"{last};"]
    text = "\n".join(f"    {statement}" for statement in statements)
    return f"static double {name}(double x) {{\n{text}\n}}\n"


def _numeric_inverse(program: Program) -> str:
    """q by Newton's method in t below the rise of 1/2 and in e = 1 - t above it, inside a bracket."""
    assert program.rise is not None and program.corise is not None and program.cocurvature is not None
    below = [(at, before, after) for at, before, after in program.kinks if at <= 0.5]
    above = [(1.0 - at, before, after) for at, before, after in program.kinks if at >= 0.5]
    return "\n".join(
        [
            _function("entropy_rise", program.rise),
            _function("entropy_corise", program.corise),
            _function("entropy_cocurvature", program.cocurvature),
            _half("lower_half", "entropy_rise(t) - s", "entropy_curvature(t)", below, 0.5),
            _half("upper_half", "s - entropy_corise(t)", "entropy_cocurvature(t)", above, 0.5),
            "static double entropy_inverse(double s) {\n"
            "    return s > RISE_MIDDLE ? 1.0 - upper_half(s) : lower_half(s);\n}\n\n"
            "static double entropy_coinverse(double s) {\n"
            "    return s > RISE_MIDDLE ? upper_half(s) : 1.0 - lower_half(s);\n}\n",
        ]
    )


def _line_inverse(program: Program) -> str:
    """q by Newton's method in t where it is positive, and in -t where it is negative, inside a bracket."""
    assert program.rise is not None
    above = [kink for kink in program.kinks if kink[0] > 0.0]
    rise = compiled(program.rise.expr, program.rise.argument)
    texts = [
        _function("entropy_rise", program.rise),
        _half("upper_half", "entropy_rise(t) - s", "entropy_curvature(t)", above, _last_trusted(rise)),
    ]
    if program.domain.low == 0.0:
        return "\n".join([*texts, "static double entropy_inverse(double s) { return upper_half(s); }\n"])
    below = [(-at, before, after) for at, before, after in program.kinks if at < 0.0]
    middle = program.ends["rise_middle"]
    ((_, before, after),) = [kink for kink in program.kinks if kink[0] == 0.0] or [(0.0, middle, middle)]
    texts += [
        _half("lower_half", "s - entropy_rise(-t)", "entropy_curvature(-t)", below, _last_trusted(lambda t: -rise(-t))),
        f"static double entropy_inverse(double s) {{\n    if (s > {number(after)}) return upper_half(s);\n"
        f"    return s < {number(before)} ? -lower_half(s) : 0.0;\n}}\n",
    ]
    return "\n".join(texts)


def _last_trusted(slope: Callable[[Any], Any]) -> float:
    """The last of many numbers up to the largest double at which code can compute an increasing slope."""
    t = np.append(2.0 ** np.arange(1024), sys.float_info.max)
    with np.errstate(all="ignore"):
        return float(t[trusted(t, slope(t))][-1])


def _half(name: str, miss: str, curvature: str, kinks: Sequence[tuple[float, float, float]], high: float) -> str:
    """The solution 0 < t <= high of miss = 0; it stays at a kink for all s between its rises.

    On an infinite interval it is NaN where code cannot compute the slope there, infinite beyond the largest double.
    """
    stays = [
        f"    if (s >= {number(before)} && s <= {number(after)}) return {number(at)};\n" for at, before, after in kinks
    ]
    last = "t" if high <= 0.5 else ("INFINITY" if high == sys.float_info.max else "NAN")
    return _HALF.format(name=name, miss=miss, curvature=curvature, kinks="".join(stays), high=number(high), last=last)


_HALF = """static double {name}(double s) {{
    double low = 5e-324, high = {high}, t = 0.125;
    int k;
{kinks}    for (k = 0; k < 200; k++) {{ /* Newton's method for log t */
        double miss = {miss}, slope = {curvature} * t, step = miss / slope;
        double next = fabs(step) < 1e-6 ? t - t * step : t * exp(-step);
        if (slope < 1e300 && (fabs(miss) <= 4.4e-16 * fabs(s) || fabs(step) <= 2.2e-16))
            return fabs(step) < 1e-6 ? next : t;
        if (miss < 0.0) low = t; else high = t;
        if (high - low <= 2.2e-16 * high) {{
            if (high == {high}) return {last};
            return low < 1e-300 || !(fabs(miss) > 1e-6 * fabs(s) + 1e-6 * slope || !isfinite(miss)) ? t : NAN;
        }}
        if (k % 4 == 3 || !(next > low && next < high))
            next = high < 2.0 * low ? low + 0.5 * (high - low) : sqrt(low) * sqrt(high);
        t = next;
    }}
    return t;
}}
"""
