"""Equal forms: equal in exact arithmetic, better in floating point."""

import mpmath
import numpy as np
import pytest
import sympy

import fysym
from fysym import rewrite, truth
from fysym.program import compiled
from fysym.rewrite import is_awkward, patched, power_differences, safe, variants

t = sympy.Symbol("t", positive=True)
s = sympy.Symbol("s", real=True)


def worst_error(form: sympy.Expr, expr: sympy.Expr, x: sympy.Symbol, points: list[float]) -> float:
    values = compiled(form, x)(np.array(points))
    exact = [truth.evaluate_reliably(expr, {x: sympy.Rational(p)}) for p in points]
    return max(abs(float((v - e) / e)) for v, e in zip(values, exact, strict=True))


TAIL = [1e-300, 1e-30, 1e-9, 0.1, 0.4]


@pytest.mark.parametrize(
    ("expr", "x", "points"),
    [
        (sympy.log(1 + t), t, TAIL),
        (sympy.exp(t) - 1, t, TAIL),
        (1 - sympy.exp(-3 * t), t, TAIL),
        (sympy.erf(s) / 2 + sympy.Rational(1, 2), s, [-5.0, -3.0, -1.0, 0.5]),
        (1 - sympy.erf(s), s, [5.0, 3.0, -1.0]),
        (sympy.LambertW(3 * sympy.exp(s - 1)), s, [-700.0, -5.0, 0.0, 5.0, 900.0]),
    ],
)
def test_safe_functions_keep_their_digits(expr: sympy.Expr, x: sympy.Symbol, points: list[float]) -> None:
    with np.errstate(all="ignore"):
        assert worst_error(safe(expr, x), expr, x, points) < 1e-13


def test_power_differences_near_a_singular_parameter() -> None:
    a = 1 + sympy.Rational(1, 10**9)
    expr = (t - t**a) / (a - 1)
    points = [1e-9, 0.1, 0.5, 0.9]
    assert worst_error(expr, expr, t, points) > 1e-9
    assert worst_error(power_differences(sympy.expand(expr)), expr, t, points) < 1e-14


def test_every_variant_is_equal() -> None:
    for expr in (
        -t * sympy.log(t) + (1 + t) * sympy.log((1 + t) / 2),
        t / (1 + t) ** 2,
        sympy.exp(t) / (1 + sympy.exp(t)),
    ):
        points = np.array([0.1, 0.3, 0.8])
        want = compiled(expr, t)(points)
        forms = list(variants(expr, t))
        assert len(forms) >= 2
        for form in forms:
            np.testing.assert_allclose(compiled(form, t)(points), want, rtol=1e-13)


@pytest.mark.parametrize("argument", [(1 - t) ** 2, 1 - 2 * t + t**2, (1 - t) ** 3, (1 - t**2) ** 2 / 4])
def test_a_logarithm_of_a_power_has_a_form_without_it(argument: sympy.Expr) -> None:
    points = [0.25, 0.99, 1 - 2.0**-53]
    with np.errstate(divide="ignore"):
        errors = [worst_error(form, sympy.log(argument), t, points) for form in variants(sympy.log(argument), t)]
    assert min(errors) < 1e-15


def test_a_logarithm_of_a_negative_constant_stays() -> None:
    assert rewrite._split_logs(sympy.log(t - 1)) == sympy.log(t - 1)


def test_awkward_powers_are_recognised() -> None:
    assert is_awkward((1 + t) ** 1000)
    assert is_awkward(t ** sympy.Rational(1, 10**9))
    assert not is_awkward(t**200 + (1 + t) ** 3)


def test_a_power_series_where_terms_cancel() -> None:
    points = [1e-100, 1e-30, 1e-9, 1e-3, 0.03, 0.2]
    for expr in (sympy.sqrt(1 + t) - 1, sympy.tan(t) - t, 1 - sympy.sqrt(t) - sympy.exp(-sympy.sqrt(t))):
        with np.errstate(all="ignore"):
            assert worst_error(expr, expr, t, points) > 1e-9
            assert min(worst_error(form, expr, t, points) for form in patched(expr, t)) < 1e-13


def test_half_angles() -> None:
    points = [1e-100, 1e-30, 1e-9, 0.1, 0.4]
    arcs = (sympy.acos(1 - t), sympy.pi / 2 - sympy.asin(1 - t))
    for expr in (1 - sympy.cos(t), t**2 + 3 - 3 * sympy.cos(2 * t), *arcs):
        with np.errstate(all="ignore"):
            assert min(worst_error(form, expr, t, points) for form in variants(expr, t)) < 1e-14, expr


@pytest.mark.parametrize(
    ("expr", "form"),
    [
        (sympy.sec(t), 1 / sympy.cos(t)),
        (sympy.csc(t), 1 / sympy.sin(t)),
        (sympy.cot(t), sympy.cos(t) / sympy.sin(t)),
        (sympy.erfinv(1 - t), sympy.erfcinv(t)),
        (sympy.erfinv(t - 1), -sympy.erfcinv(t)),
        (sympy.erfinv(t / 2), sympy.erfinv(t / 2)),
        (1 - sympy.cos(t), 2 * sympy.sin(t / 2) ** 2),
        (3 + 3 * sympy.cos(t), 6 * sympy.cos(t / 2) ** 2),
        (sympy.acos(1 - t), 2 * sympy.asin(sympy.sqrt(t / 2))),
        (sympy.LambertW(-t / 4), sympy.LambertW(-t / 4)),
    ],
    ids=str,
)
def test_forms_that_were_made_for_it(expr: sympy.Expr, form: sympy.Expr) -> None:
    assert safe(expr, t) == form


@pytest.mark.parametrize(
    ("expr", "chain"),
    [
        (sympy.exp(-(sympy.erfinv(2 * t - 1) ** 2)), True),
        (3 * sympy.log(1 + t), True),
        (t * sympy.log(t), False),
        (t + sympy.log(t), False),
        (t**t, False),
    ],
    ids=str,
)
def test_a_function_of_a_function_is_not_simplified(
    expr: sympy.Expr, chain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[sympy.Expr] = []
    monkeypatch.setattr(rewrite, "simplified", lambda e: asked.append(e) or e)
    list(variants(expr, t))
    assert (not asked) == chain == rewrite._is_chain(expr)


def test_a_rewrite_that_fails_is_only_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: sympy.Expr) -> sympy.Expr:
        raise NotImplementedError

    expr = t / (1 + t) ** 2
    monkeypatch.setattr(rewrite, "_REWRITES", (fails, sympy.factor))
    forms = list(variants(expr, t))
    assert forms[0] == expr
    assert all(abs(sympy.N((form - expr).subs(t, sympy.Rational(1, 3)))) < 1e-12 for form in forms)


@pytest.mark.parametrize(
    "argument", [1 - t, t - 1, 1 - t / 2, 1 - t**2, sympy.exp(-t), 2 * t - 1, (1 - t) ** 2, 1 / (1 + t)], ids=str
)
def test_an_inverse_hyperbolic_tangent_next_to_one_has_a_form_in_logarithms(argument: sympy.Expr) -> None:
    expr = t * sympy.atanh(argument)
    points = [1e-300, 1e-100, 1e-30, 1e-9, 1e-3, 0.03, 0.2]
    for order in (0, 1):
        part = sympy.diff(expr, t, order)
        with np.errstate(all="ignore"):
            assert not worst_error(part, part, t, points) < 1e-3
            assert np.nanmin([worst_error(form, part, t, points) for form in variants(part, t)]) < 1e-13


def test_each_term_in_lowest_terms_neither_overflows_nor_vanishes() -> None:
    expr = t**2 / (t - (1 - t) * t) - t / (t * (t - 2)) + sympy.log(t)
    assert rewrite._terms_cancelled(expr) == 1 - 1 / (t - 2) + sympy.log(t)
    curvature = sympy.diff(t * sympy.atanh(1 - t), t, 2)
    assert worst_error(rewrite._terms_cancelled(curvature), curvature, t, [1e-300, 1e-200, 1e-9, 0.5]) < 1e-14


def test_an_entropy_of_an_inverse_hyperbolic_tangent_predicts() -> None:
    """h' = atanh(1-t) - 1/(2-t), far down as far as probabilities go."""
    reg = fysym.compile("t*atanh(1-t)")
    assert reg.sparsity == "dense" and reg.fact("strictly_concave").status == "proved"
    for p in (0.25, 1e-9, 1e-100, 1e-290):
        with mpmath.workdps(400):
            low, high = (mpmath.atanh(1 - x) - 1 / (2 - x) for x in (1 - mpmath.mpf(p), mpmath.mpf(p)))
        assert reg.predict([float(low - high), 0.0])[0] == pytest.approx(p, rel=1e-12)
