"""Emits a Program as one C99 file: header comment, scalar functions, and the kernel of runtime/kernel.c."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import sympy

from ..domains import SIMPLEX
from ..errors import UnsupportedError
from ..program import Program, Scalar
from ..rewrite import expm1, log1p, ndtr, wrightomega
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
    if (z < -700.0) return w;
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
void fy_predict(const double *theta, double *p, size_t rows, size_t classes);
    The predictions p (rows x classes, contiguous) for scores theta. A score of -inf is a mask, NaN makes its row NaN,
    +inf takes all of the mass.
void fy_value_and_grad(const double *theta, const double *y, const long *labels, double *loss, double *grad,
                       size_t rows, size_t classes);
    The loss of each row and its gradient p - y. Give targets as proportions y (rows x classes) and labels = NULL, or
    as labels (one of 0 .. classes - 1 a row) and y = NULL.
fy_predictf and fy_value_and_gradf are the same for float; they compute in double.

All functions are re-entrant, allocate nothing and need only libm. Compile with -lm; with -fopenmp rows run in parallel.
With -DFY_SELF_CHECK this file is a program that compares predictions with values known to 40 digits.
"""

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
        double allowed = CHECKS[k][0], p[{most}], grad[{most}], loss, first = 0.0, total = 0.0;
        const double *theta = CHECKS[k] + 1, *expected = theta + d;
        fy_predict(theta, p, 1, d);
        for (j = 0; j < d; j++) {{ /* the losses for two labels differ by the difference of their scores */
            long label = (long)j;
            fy_value_and_grad(theta, NULL, &label, &loss, grad, 1, d);
            if (j == 0) first = loss;
            total += p[j];
            if (!(fabs(p[j] - expected[j]) <= allowed) || !(fabs(grad[j] - (p[j] - 1.0)) <= 1e-15) || isnan(loss) ||
                (!isinf(loss) && !(fabs((loss - first) - (theta[0] - theta[j])) <= 1e-13 * (1.0 + loss + first)))) {{
                printf("class %zu of check %zu: %.17g, not %.17g; loss %.17g\\n", j, k, p[j], expected[j], loss);
                return 1;
            }}
        }}
        fy_value_and_grad(theta, p, NULL, &loss, grad, 1, d);
        if (!(fabs(total - 1.0) <= 1e-14) || !(loss >= 0.0 && loss <= 1e-14)) {{
            printf("check %zu: the sum is %.17g, the loss of the prediction %.17g\\n", k, total, loss);
            return 1;
        }}
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
    if program.domain != SIMPLEX:
        raise UnsupportedError(f"there is no C code for the domain {program.domain} yet; use the target 'numpy'")
    functions = _functions(program)
    helpers = [text for name, text in HELPERS.items() if f"{name}(" in functions]
    kernel = resources.files("fysym.runtime").joinpath("kernel.c").read_text(encoding="utf-8")
    comment = "\n".join(f" * {_comment(line)}".rstrip() for line in [*header, *USAGE.splitlines()])
    return "\n".join(
        [
            f"/*\n{comment}\n */\n",
            "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n",
            *(f"#define {name.upper()} {number(value)}" for name, value in program.ends.items()),
            f"#define NEWTON {int(program.newton)}",
            *_exponential(program),
            *(["#define HAS_COVALUE"] if program.covalue is not None else []),
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


def _exponential(program: Program) -> list[str]:
    if program.exponential is None:
        return []
    rate, scale = program.exponential
    return [f"#define RATE {number(rate)}", f"#define SCALE {number(scale)}"]


def _functions(program: Program) -> str:
    texts = [_function("entropy_value", program.value)]
    if program.covalue is not None:
        texts.append(_function("entropy_covalue", program.covalue))
    if program.exponential is not None:
        return "\n".join(texts)
    texts.append(_function("entropy_slope", program.slope))
    texts.append(_function("entropy_curvature", program.curvature))
    choice = "1.0 / entropy_curvature(t)"
    for at, _, _ in program.kinks:
        choice = f"t == {at!r} ? 0.0 : {choice}"
    texts.append(f"static double entropy_weight(double t) {{ return {choice}; }}\n")
    if program.inverse is None:
        texts.append(_numeric_inverse(program))
    else:
        texts.append(_function("entropy_inverse", program.inverse))
        if program.coinverse is not None:
            texts.append(_function("entropy_coinverse", program.coinverse))
        else:
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
    below, above = [], []
    for at, before, after in program.kinks:
        t, low, high = (number(x) for x in (at, before, after))
        if at <= 0.5:
            below.append(f"    if (s >= {low} && s <= {high}) return {t};\n")
        if at >= 0.5:
            above.append(f"    if (s >= {low} && s <= {high}) return {number(1.0 - at)};\n")
    return "\n".join(
        [
            _function("entropy_rise", program.rise),
            _function("entropy_corise", program.corise),
            _function("entropy_cocurvature", program.cocurvature),
            _HALF.format(
                name="lower_half", miss="entropy_rise(t) - s", curvature="entropy_curvature", kinks="".join(below)
            ),
            _HALF.format(
                name="upper_half", miss="s - entropy_corise(t)", curvature="entropy_cocurvature", kinks="".join(above)
            ),
            "static double entropy_inverse(double s) {\n"
            "    return s > RISE_MIDDLE ? 1.0 - upper_half(s) : lower_half(s);\n}\n\n"
            "static double entropy_coinverse(double s) {\n"
            "    return s > RISE_MIDDLE ? upper_half(s) : 1.0 - lower_half(s);\n}\n",
        ]
    )


_HALF = """static double {name}(double s) {{
    double low = -745.0, high = -0.6931471805599453, x = -2.0; /* of log t */
    int k;
{kinks}    for (k = 0; k < 200; k++) {{
        double t = exp(x), miss = {miss}, slope = {curvature}(t) * t, step = miss / slope, next = x - step;
        if (slope < 1e300 && (fabs(miss) <= 4.4e-16 * fabs(s) || fabs(step) <= 2.2e-16))
            return fabs(step) < 1e-6 ? t - t * step : t;
        if (miss < 0.0) low = x; else high = x;
        if (high - low <= 2.2e-16 * fabs(low)) return t;
        if (k % 4 == 3) next = 0.5 * (low + high);
        else if (!(next > low && next < high)) next = 2.0 * x > low && miss > 0.0 ? 2.0 * x : 0.5 * (low + high);
        x = next;
    }}
    return exp(x);
}}
"""
