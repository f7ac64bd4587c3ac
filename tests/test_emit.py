"""Printing: expressions as NumPy code; and emitted modules that stand alone."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy

import fysym
from fysym.emit import numba
from fysym.emit.printer import _strip, lines, literal
from fysym.errors import UnsupportedError
from fysym.program import compiled
from fysym.rewrite import log1p, safe

x = sympy.Symbol("x", positive=True)
POINTS = np.array([1e-9, 0.1, 0.37, 0.5, 0.9, 0.999])


@pytest.mark.parametrize(
    "text",
    [
        "x*(1-x)/2", "-x*log(x)", "x**3 - x**5/7", "sqrt(x)*x", "x**Rational(5,2)", "x**Rational(1,3)",
        "x**Rational(2,7)",
        "1/x - 1/(1+x)", "sin(pi*x)/pi", "atan(x)*tanh(x)", "exp(-x**2)", "erf(x) + erfc(x)/3", "acos(x) - asin(x)",
        "log(1+x)", "exp(x)-1", "1/sqrt(x+1)", "(x+1)**4", "(x+2)**-3", "2**x", "x**x", "cosh(x)-sinh(x)",
        "Piecewise((x, x < Rational(1,2)), (1-x, True))", "-3*x", "sec(x)", "gamma(x+1)", "loggamma(x+2)",
        "digamma(x+1)",
        "LambertW(x)", "erfinv(x)", "asinh(x)+acosh(x+2)+atanh(x/2)",
    ],
)  # fmt: skip
def test_code_equals_expression(text: str) -> None:
    expr = sympy.sympify(text, locals={"x": x})
    got = compiled(safe(expr, x), x)(POINTS)
    want = np.array([float(sympy.N(expr.subs(x, sympy.Rational(p)), 30)) for p in POINTS])
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_constant_expressions_broadcast() -> None:
    assert compiled(sympy.Integer(-2), x)(POINTS).shape == POINTS.shape


def test_rounding_below_zero_is_clipped_before_a_root() -> None:
    got = compiled(sympy.sqrt(18 * x + 3), x)(np.array([-0.16666666666666669]))
    assert got[0] == 0.0


def test_literals_are_the_nearest_doubles() -> None:
    assert literal(sympy.Rational(1, 3)) == repr(1 / 3)
    assert literal(sympy.pi) == repr(np.pi)
    assert literal(sympy.Rational(10**400, 10**399)) == "10.0"


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(UnsupportedError, match="zeta"):
        lines(sympy.zeta(x), x, "x")


SAMPLES = {
    "shannon": lambda: fysym.catalog.shannon,
    "closed form": lambda: fysym.catalog.tsallis.bind(alpha=1.5),
    "special function": lambda: fysym.catalog.probit,
    "complement": lambda: fysym.catalog.fermi_dirac,
    "numeric inverse": lambda: fysym.catalog.gini_sine,
    "kink": lambda: fysym.compile("t*(1-t) + min(t, 2*(1-t))/2"),
    "faces": lambda: fysym.compile("t*sqrt(1-t)"),
    "unbounded": lambda: fysym.compile("log(t)"),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_an_emitted_module_stands_alone(kind: str, tmp_path: Path) -> None:
    reg = SAMPLES[kind]()
    path = tmp_path / "emitted.py"
    path.write_text(
        reg.source()
        + "\nimport sys\nassert not {'fysym', 'sympy', 'mpmath'} & set(sys.modules)\n"
        + "print(predict([0.4, 0.1, -0.7]).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "self-check passed" in done.stdout
    assert ast.literal_eval(done.stdout.splitlines()[-1]) == reg.predict([0.4, 0.1, -0.7], target="numpy").tolist()


def test_a_broken_module_fails_its_self_check(tmp_path: Path) -> None:
    source = fysym.catalog.gini.source()
    broken = re.sub(r"(def entropy_inverse.*?return )", r"\1 1.001 * ", source, flags=re.S)
    assert broken != source
    path = tmp_path / "broken.py"
    path.write_text(broken)
    assert subprocess.run([sys.executable, "-I", str(path)], capture_output=True).returncode != 0


def test_nothing_typed_by_the_user_becomes_code() -> None:
    evil = 'x"""\nimport os\nos.system("echo hacked")\n#'
    source = fysym.compile("t*(1-t)/2", name=evil).source()
    plain = fysym.compile("t*(1-t)/2").source()
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(plain))


def test_scipy_is_imported_only_where_it_is_needed() -> None:
    assert "scipy" not in fysym.catalog.gini.source()
    assert "from scipy import special" in fysym.catalog.probit.source()


def test_the_header_states_entropy_and_facts() -> None:
    header = fysym.catalog.gini.source().split("from __future__")[0]
    for words in ("h(t) = t*(1 - t)/2", "margin: 1 [proved]", "sparsity: full [proved]"):
        assert words in header


@pytest.mark.parametrize(
    "number", [sympy.Integer(10) ** 400, -sympy.Rational(10**400, 3), sympy.exp(1000), sympy.sqrt(2) * 10**400]
)
def test_a_number_too_large_for_a_double_is_refused(number: sympy.Expr) -> None:
    with pytest.raises(UnsupportedError, match="too large for a double"):
        literal(number)


def test_a_number_too_small_for_a_double_is_zero() -> None:
    assert literal(sympy.Rational(1, 10**400)) == "0.0"


def test_only_brackets_around_the_whole_are_removed() -> None:
    assert _strip("(a) + (b)") == "(a) + (b)" and _strip("(a + (b))") == "a + (b)" and _strip("a") == "a"


def test_an_entropy_beyond_doubles_is_an_error_of_ours() -> None:
    with pytest.raises(fysym.FysymError):
        fysym.compile("10**400*t*(1-t)").predict([0.5, 0.25])


def test_logarithms_of_one_plus_a_multiple_are_taken_together() -> None:
    """Terms c log1p(k t) with a moderate k, and what is left of the sum."""
    t = sympy.Symbol("t", positive=True)
    rest = t**2 + log1p(t**2) + log1p(17 * t) + 5
    products, left = numba._split_logarithms(3 * log1p(2 * t) - log1p(-t) + rest, t)
    assert sorted(products) == [(-1.0, -1.0), (3.0, 2.0)] and sympy.expand(left - rest) == 0
