"""High precision: the values everything else is checked against."""

import threading

import mpmath
import pytest
import sympy

from fysym import truth

t = sympy.Symbol("t", positive=True)


def test_fifty_digits() -> None:
    value = truth.evaluate(sympy.log(t) + sympy.pi, {t: sympy.Rational(1, 3)})
    with mpmath.workdps(60):
        assert abs(mpmath.mpf(str(value)) - (mpmath.pi - mpmath.log(3))) < mpmath.mpf(10) ** -48


def test_cancellation_raises_the_precision() -> None:
    expr = (sympy.sqrt(1 + t) - 1) / t
    value = truth.evaluate_reliably(expr, {t: sympy.Rational(1, 10**120)})
    assert abs(value - 0.5) < 1e-20


def test_parts_that_occur_twice_are_computed_once() -> None:
    part = sympy.sin(t) + sympy.exp(t)
    expr = sympy.log(part) + part ** sympy.Rational(1, 3) / (1 + sympy.log(part) ** 2) + t
    assert truth._repeated(expr) == {part, sympy.log(part)}
    with mpmath.workdps(50):
        x = mpmath.mpf(1) / 7
        y = mpmath.sin(x) + mpmath.exp(x)
        right = mpmath.log(y) + mpmath.cbrt(y) / (1 + mpmath.log(y) ** 2) + x
        assert abs(mpmath.mpf(str(truth.evaluate(expr, {t: sympy.Rational(1, 7)}))) - right) < mpmath.mpf(10) ** -45


def test_what_is_not_real_is_nan() -> None:
    assert truth.evaluate(sympy.sqrt(t - 1), {t: sympy.Rational(1, 2)}) != truth.evaluate(t, {t: 1})
    value = truth.evaluate(sympy.log(t - 1), {t: sympy.Rational(1, 2)})
    assert value != value


def test_inverse_error_functions_in_the_tail() -> None:
    x = sympy.Rational(1, 10**250)
    y = truth.evaluate(sympy.erfcinv(t), {t: x})
    with mpmath.workdps(40):
        assert abs(mpmath.erfc(mpmath.mpf(str(y))) / mpmath.mpf(10) ** -250 - 1) < mpmath.mpf(10) ** -9
    left = truth.evaluate_reliably(sympy.erfinv(2 * t - 1), {t: x})
    right = truth.evaluate_reliably(-sympy.erfcinv(2 * t), {t: x})
    assert abs(left - right) < 1e-20 * abs(right)


def test_sign_tells_zero_from_tiny() -> None:
    assert truth.sign(sympy.sqrt(2) + sympy.sqrt(3) - sympy.sqrt(5 + 2 * sympy.sqrt(6))) == 0
    assert truth.sign(sympy.pi - sympy.Rational(355, 113)) == -1
    assert truth.sign(t) == 1
    assert truth.sign(sympy.Symbol("a")) is None


def test_threads_do_not_share_precision() -> None:
    results: dict[int, str] = {}

    def work(digits: int) -> None:
        for _ in range(50):
            results[digits] = str(truth.evaluate(sympy.exp(t), {t: 1}, digits=digits))

    threads = [threading.Thread(target=work, args=(digits,)) for digits in (20, 60, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    e = sympy.E.evalf(80)
    for digits in (60, 200):
        assert abs(sympy.Float(results[digits], 80) - e) < sympy.Float(10) ** -55


def test_inverse_error_functions_at_their_ends() -> None:
    assert truth.evaluate(sympy.erfcinv(t), {t: 1}) == 0
    above, below = (truth.evaluate(sympy.erfcinv(t), {t: sympy.Rational(k, 4)}) for k in (5, 3))
    assert above == -below < 0
    assert truth.evaluate(sympy.erfcinv(t), {t: 0}) == truth.context().inf
    outside = truth.evaluate(sympy.erfcinv(t), {t: sympy.Rational(-1, 4)})
    assert outside != outside


def test_the_memory_for_inverse_error_functions_is_bounded() -> None:
    context = mpmath.mp.clone()
    context.dps = 5
    erfcinv = truth._namespace(context)["erfcinv"]
    known = erfcinv.__closure__[[c.cell_contents.__class__ for c in erfcinv.__closure__].index(dict)].cell_contents
    known.update(dict.fromkeys(range(5000)))
    value = erfcinv(context.mpf(1) / 4)
    ((digits, kept),) = known.values()
    assert abs(context.erfc(value) - 0.25) < 1e-4 and digits >= 5 and abs(kept - value) < 1e-4


def test_more_digits_of_an_inverse_error_function_start_from_fewer() -> None:
    """The same digits in any order of precisions."""
    x = sympy.Rational(1, 10**40)
    first = truth.evaluate(sympy.erfcinv(t), {t: x}, 400)
    truth._forget()
    values = [truth.evaluate(sympy.erfcinv(t), {t: x}, digits) for digits in (30, 50, 130, 400, 50)]
    for value, digits in zip(values, (30, 50, 130, 400, 50), strict=True):
        assert abs(mpmath.mpf(str(value)) - mpmath.mpf(str(first))) < 1e-14
        assert abs(value - first) <= mpmath.mpf(10) ** (2 - digits)


def test_a_sign_that_sympy_does_not_know_is_read_from_digits() -> None:
    x = sympy.erfinv(sympy.Rational(1, 2)) - sympy.Rational(1, 2)
    assert (truth.sign(x), truth.sign(-x)) == (-1, 1)
    tiny = sympy.erfinv(sympy.Rational(1, 2)) * sympy.Rational(1, 10**60)
    assert truth.sign(tiny - tiny / 2) in (1, None)
    assert truth.sign(sympy.nan) is None


def test_the_functions_that_are_kept_are_bounded_in_number() -> None:
    truth._forget()
    for k in range(300):
        assert truth.evaluate(t + k, {t: 1}) == k + 1
    assert len(truth._state().functions) < 260


def test_a_series_that_does_not_decay_is_refused() -> None:
    coefficients = truth.series(sympy.exp(t), t, 1, 0.5, 10)
    assert [abs(c * sympy.factorial(k) - 1) < 1e-15 for k, c in enumerate(coefficients)] == [True] * 10
    with pytest.raises(ValueError, match="not analytic"):
        truth.series(sympy.log(t), t, 1, 0.5, 10)


@pytest.mark.parametrize("h", ["exp(exp(exp(20*t)))", "2**(2**(2**(40*t)))", "cosh(exp(exp(40*t)))"])
def test_what_would_fill_the_memory_is_infinite(h: str) -> None:
    assert truth.evaluate(sympy.sympify(h, locals={"t": t}), {t: sympy.Rational(9, 10)}) == mpmath.inf


@pytest.mark.parametrize(
    "h", ["exp(-exp(exp(20*t)))", "2**(-(2**(2**(40*t))))", "sin(exp(exp(20*t)))", "t - exp(-exp(exp(20*t)))"]
)
def test_what_has_too_many_digits_is_named_and_not_called_zero(h: str) -> None:
    expr = sympy.sympify(h, locals={"t": t})
    at = {t: sympy.Rational(9, 10)}
    assert mpmath.isnan(truth.evaluate(expr, at))
    part, is_far = truth.undefined_part(expr, at)
    assert is_far and expr.has(part)


def test_the_part_that_is_not_real_is_named() -> None:
    part = sympy.sqrt(t - sympy.Rational(1, 2))
    assert truth.undefined_part(t**2 + sympy.exp(part), {t: sympy.Rational(1, 4)}) == (part, False)
