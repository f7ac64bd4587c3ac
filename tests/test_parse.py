"""Reading text: what is accepted, what is refused, and where."""

from __future__ import annotations

import math

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sympy import Rational, S

from fysym.errors import ParseError
from fysym.parse import parse_expression

t, s, alpha, k = sympy.symbols("t s alpha k")
half = Rational(1, 2)

ACCEPTED = {
    "-t*log(t)": -t * sympy.log(t),
    "  -t*log(t)\n": -t * sympy.log(t),
    "(t - t**alpha)/(alpha - 1)": (t - t**alpha) / (alpha - 1),
    "t\n + 1": t + 1,
    "t\r\n\t+ 1": t + 1,
    "-2**2": S(-4),
    "2**-1": half,
    "2**3**2": S(512),
    "6/4*t": 3 * t / 2,
    "1 - 2 - 3": S(-4),
    "0.1": Rational(1, 10),
    "1e-9*t": t / 10**9,
    ".5 + 5. + 1E2": Rational(211, 2),
    "0.30000000000000004": Rational(30000000000000004, 10**17),
    "t**1.000000001": t ** Rational(1000000001, 1000000000),
    "9007199254740993": S(9007199254740993),
    "2**(1/2)": sympy.sqrt(2),
    "2**3999*t": S(2) ** 3999 * t,
    "(t + 1)**10000": (t + 1) ** 10000,
    "exp(1)": S.Exp1,
    "exp(t*log(5000))": sympy.exp(t * sympy.log(5000)),
    "sin(pi*t)/pi + E": sympy.sin(sympy.pi * t) / sympy.pi + S.Exp1,
    "ln(t) + log(t, 2) + log2(t) + log10(t)": sympy.log(t)
    + 2 * sympy.log(t) / sympy.log(2)
    + sympy.log(t) / sympy.log(10),
    "log1p(t) + expm1(t)": sympy.log(1 + t) + sympy.exp(t) - 1,
    "xlogy(t, s) + xlogy(0, 0)": t * sympy.log(s),
    "sqrt(t) + cbrt(t)": t**half + t ** Rational(1, 3),
    "arcsin(t) + arccos(t) + arctan(t)": sympy.asin(t) + sympy.acos(t) + sympy.atan(t),
    "sinh(t)*cosh(t)*tanh(t)": sympy.sinh(t) * sympy.cosh(t) * sympy.tanh(t),
    "erf(t) + erfc(t) + erfinv(t)": sympy.erf(t) + sympy.erfc(t) + sympy.erfinv(t),
    "erfcinv(t)": sympy.erfinv(1 - t),
    "LambertW(t) + lambertw(s, -1)": sympy.LambertW(t) + sympy.LambertW(s, -1),
    "gamma(5) + loggamma(t) + digamma(t)": 24 + sympy.loggamma(t) + sympy.digamma(t),
    "abs(t - 1/2) + Abs(-2) + sign(t)": sympy.Abs(t - half) + 2 + sympy.sign(t),
    "min(t, 1) + Max(1, 2, 3)": sympy.Min(t, 1) + 3,
    "max(sqrt(2), pi)": sympy.pi,
    "Piecewise((t, t < 1/2), (1 - t, True))": sympy.Piecewise((t, t < half), (1 - t, True)),
    "t if t < 1/2 else 1 - t": sympy.Piecewise((t, t < half), (1 - t, True)),
    "Piecewise((t, 0 < t <= 1 and not t == 1/2), (0, True))": sympy.Piecewise(
        (t, sympy.And(sympy.Lt(0, t), sympy.Le(t, 1), sympy.Ne(t, half))), (0, True), evaluate=False
    ),
    "Piecewise((s, 1 > 2), (t, True), (1, True))": t,
    "sin(10**300)": sympy.sin(S(10) ** 300),
    "log(10**300)": sympy.log(S(10) ** 300),
    "beta*S*I*N": sympy.prod(sympy.symbols("beta S I N")),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text):
    assert parse_expression(text) == ACCEPTED[text]


def test_symbols_carry_no_assumptions():
    assert parse_expression("t*k").free_symbols == {sympy.Symbol("t"), sympy.Symbol("k")}


def test_long_sums_and_products_are_not_deep():
    assert parse_expression("t" + " + t" * 500) == 501 * t
    assert parse_expression("t" + "*t" * 500) == t**501


# text -> (column of the caret, a piece of the message)
REFUSED = {
    "": (0, "the text is empty"),
    " \n\t": (0, "the text is empty"),
    "t^2": (1, "use ** for powers"),
    "2t": (1, "write *"),
    "2 t": (2, "write *"),
    "3 + 2(t)": (4, "write *"),
    "(1-t)(t)": (0, "write *"),
    "t(1-t)": (0, "write t*(...)"),
    "exp(t)2": (6, "write *"),
    "lambda*t": (0, "lambda is a reserved word in Python; call the parameter lam"),
    "lambda: t": (0, "reserved word"),
    "t + class": (4, "class is a reserved word"),
    "x for x in t": (2, "for is a reserved word"),
    "t = 1": (2, "right-hand side"),
    "t == 1": (0, "a comparison belongs in a condition"),
    "1 + (t < 1)": (5, "a comparison belongs in a condition"),
    "t and s": (0, "belong in a condition"),
    "not t": (0, "belongs in a condition"),
    "t + True": (4, "True is not a number"),
    "logg(t)": (0, "did you mean log"),
    "1 + Exp(t)": (4, "did you mean exp"),
    "t +\n  foo(t)": (6, "foo is not a function"),
    "  foo(t)": (2, "foo is not a function"),
    "exp": (0, "write exp(...)"),
    "exp()": (0, "exp takes 1 argument, not 0"),
    "log(t, 2, 3)": (0, "log takes 1 or 2 arguments, not 3"),
    "xlogy(t)": (0, "xlogy takes 2 arguments, not 1"),
    "min()": (0, "at least 1 argument"),
    "log(t, base=2)": (11, "arguments by position"),
    "log(*t)": (4, "by position"),
    "log(**t)": (4, "by position"),
    "__import__('os')": (0, "two underscores"),
    "t.__class__": (1, "dot"),
    "np.log(t)": (2, "write log(t), not np.log(t)"),
    "t[0]": (1, "square brackets"),
    "[t for t in s]": (0, "square brackets"),
    "{t}": (0, "curly brackets"),
    "'t'": (0, "quotes"),
    "f'{t}'": (1, "quotes"),
    "(t := 1)": (3, ":"),
    "t # half": (2, "comments"),
    "t; s": (1, ";"),
    "t % 2": (2, "%"),
    "t // 2": (0, "the operators are + - * / and **"),
    "t << 2": (0, "the operators are + - * / and **"),
    "t, s": (0, "comma"),
    "log((t, 2))": (4, "comma"),
    "(t": (0, "never closed"),
    "t + (s*(t)": (4, "never closed"),
    "t) + (t": (1, "closes nothing"),
    "t +": (3, "missing"),
    "* t": (0, "misplaced"),
    "t if t > 0": (0, "else"),
    "t\x00": (1, "U+0000"),
    "2j": (1, "write *"),
    "1_000": (1, "an operator is missing"),
    "0x1F": (1, "an operator is missing"),
    "α*t": (0, "write alpha for α"),
    "t*λ": (2, "write lam for λ"),
    "t²": (1, "**2"),
    "1 − t": (2, "minus"),
    "é + t": (0, "ASCII"),
    "oo*t": (0, "infinity"),
    "1" * 301: (0, "300 digits"),
    "t*1e401": (2, "exponent"),
    "1e-999999999999": (0, "exponent"),
    "t + 1/0": (4, "division by zero"),
    "t/0": (0, "division by zero"),
    "t/(s - s)": (0, "division by zero"),
    "0**-1": (0, "division by zero"),
    "t*log(0)": (2, "division by zero"),
    "atanh(1)": (0, "not a real number"),
    "log(-1)": (0, "not a real number"),
    "sqrt(-1)*t": (0, "not a real number"),
    "t + asin(2)": (4, "not a real number"),
    "min(asin(2), 1)": (4, "not a real number"),
    "(-8)**(1/3)": (0, "not a real number"),
    "LambertW(-1)": (0, "not a real number"),
    "erfinv(2)": (0, "SymPy cannot build this"),
    "LambertW(t, 3)": (0, "branch"),
    "1/(sin(1)**2 + cos(1)**2 - 1)": (3, "cannot be told from zero"),
    "Piecewise((t, t < 1))": (0, "must be (expression, True)"),
    "Piecewise()": (0, "must be (expression, True)"),
    "Piecewise(t)": (10, "takes pairs"),
    "Piecewise((t, s), (0, True))": (14, "a condition is a comparison"),
    "Piecewise((1/0, t < 1), (0, True))": (11, "division by zero"),
    "1 if (1 if t > 0 else 2) > 1 else 0": (5, "cannot itself contain"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    column, piece = REFUSED[text]
    with pytest.raises(ParseError) as caught:
        parse_expression(text)
    assert piece in caught.value.problem
    assert caught.value.position == column


# Texts that would hang, crash or fill the memory if any step looked at them too late.
HOSTILE = {
    "9**9**9**9": (3, "power is too large"),
    "2**10**9": (0, "power is too large"),
    "2**1e9": (0, "power is too large"),
    "1 + (1/7)**100000": (4, "power is too large"),
    "(2**64)**(2**64)": (0, "power is too large"),
    "10**10**10*t": (0, "power is too large"),
    "(2*t)**9999": (0, "power is too large"),
    "(2*sqrt(3))**9999": (0, "power is too large"),
    "exp(10**9*log(2))": (0, "power is too large"),
    "exp(t + 10**9*log(2))": (0, "power is too large"),
    "E**(10**9*log(2))": (0, "power is too large"),
    "2**(t + 10**9)*2**(-t)": (0, "power is too large"),
    "t**(10**9*log(3)/log(t))": (0, "power is too large"),
    "(2**s)**9999": (0, "power is too large"),
    "t/(999**1e-9*sqrt(2))": (3, "too large a denominator"),
    "exp(-1e-9*log(999))": (0, "too large a denominator"),
    "2**3999*2**3999": (0, "4000 bits"),
    "t**100000": (0, "at most 10000"),
    "t**-100000": (0, "at most 10000"),
    "(t**10000)**10000": (0, "at most 10000"),
    "t**9999*t**9999": (0, "at most 10000"),
    "gamma(10**9)": (0, "beyond 1000"),
    "gamma(gamma(100))": (0, "beyond 1000"),
    "loggamma(10**300)": (0, "beyond 1000"),
    "digamma(-10**300)": (0, "beyond 1000"),
    "gamma(999.5)**1000": (0, "too large"),
    "exp(exp(exp(exp(9))))": (8, "too large or too small"),
    "pi**pi**pi**pi**pi": (4, "too large or too small"),
    "max(cosh(10**300), 1)": (4, "too large or too small"),
    "(" * 10_000: (100, "100 deep"),
    "(" * 101 + "t" + ")" * 101: (100, "100 deep"),
    "-" * 9_999 + "t": (0, "deep"),
    "-" * 200 + "t": (100, "deep"),
    "not " * 2_000 + "t": (400, "deep"),
    "t" + "**t" * 3_000: (0, "deep"),
    "t" + "+t" * 1_500: (0, "2000 parts"),
    "t" + "+t" * 4_900: (0, ""),
    "sin(" * 100 + "t" + ")" * 100: (400, "deep"),
    "a" * 1_000_000: (10_000, "longer than 10000 characters"),
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:24])
def test_hostile(text):
    column, piece = HOSTILE[text]
    with pytest.raises(ParseError) as caught:
        parse_expression(text)
    assert piece in caught.value.problem
    assert caught.value.position == column
    assert len(str(caught.value)) < 1_000


LAZY = [
    "abs((erfinv(t) + s + 1)**5000)",
    "abs(-1 + " * 40 + "t" + ")" * 40,
    "max(" + ", ".join(f"t + s*{i}" for i in range(200)) + ")",
    "Piecewise((t, sin(t)**9 + t**7 > 1/3 and cos(t) < t), (0, True))",
    "(1 if t > 0 else " * 40 + "t" + ")" * 40,
    "(" * 99 + "t" + ")" * 99,
]


@pytest.mark.parametrize("text", LAZY, ids=lambda text: text[:24])
def test_symbols_that_sympy_would_ponder_over(text):
    assert parse_expression(text).has(t)


def test_a_step_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("fysym.parse.MAX_SECONDS", 0.2)
    with pytest.raises(ParseError, match="SymPy needs more than 0.2 s"):
        parse_expression("exp(-" * 48 + "1" + ")" * 48)


def test_message_shows_the_line_with_a_caret():
    with pytest.raises(ParseError) as caught:
        parse_expression("t +\n  foo(t)")
    assert str(caught.value).splitlines()[1:] == ["    foo(t)", "    ^"]


def test_what_sympy_raised_is_chained():
    with pytest.raises(ParseError) as caught:
        parse_expression("erfinv(2)")
    assert isinstance(caught.value.__cause__, ValueError)


PIECES = ["t", "alpha", "2", "0.5", "1e3", "10**9", "(", ")", "+", "-", "*", "/", "**", ",", " ", "\n", "<", "=="]
PIECES += ["exp(", "log(", "gamma(", "abs(", "max(", "Piecewise((", "True", " if ", " else ", " and ", "not "]
PIECES += ["lambda", "__", ".", "[", "'", "^", "é", "λ", "\x00", "0", "1/0", "asin(", "LambertW(", "sign("]


@settings(derandomize=True, deadline=None, max_examples=400)
@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=14).map("".join)))
def test_any_text_gives_an_expression_or_a_parse_error(text):
    try:
        value = parse_expression(text)
    except ParseError as error:
        assert 0 <= error.position <= len(text)
    else:
        assert isinstance(value, sympy.Expr)
        assert not value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.ImaginaryUnit)


# Random trees as pairs (text for fysym, the same in Python floats at t = 0.3, alpha = 1.7). A value is
# nan where floats would lose too many digits to compare.
LEAVES = st.one_of(
    st.just(("t", 0.3)),
    st.just(("alpha", 1.7)),
    st.integers(0, 20).map(lambda n: (str(n), float(n))),
    st.decimals("0.01", "9.99", places=2).map(lambda d: (str(d), float(d))),
)
FLOAT_FUNCTIONS = {
    "exp": lambda x: math.exp(x) if x < 14 else math.nan,
    "sin": math.sin,
    "tanh": math.tanh,
    "atan": math.atan,
    "abs": abs,
    "erf": math.erf,
}
FLOAT_OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y if abs(y) > 1e-3 else math.nan,
}


def _tame(tree):
    text, value = tree
    return text, value if abs(value) < 1e6 else math.nan


def _grow(children):
    def chain(parts):
        """a op b op c without brackets around the parts: Python's own precedence decides."""
        operands, operators = parts
        operators = operators[: len(operands) - 1]
        text = f"({operands[0][0]})" + "".join(f" {op} ({b})" for op, (b, _) in zip(operators, operands[1:]))
        value = operands[0][1]
        done = 0.0  # the finished terms of the sum; `value` is the product under way
        for op, (_, y) in zip(operators, operands[1:]):
            if op in "*/":
                value = FLOAT_OPERATORS[op](value, y)
            else:
                done, value = done + value, y if op == "+" else -y
        return text, done + value

    def power(parts):
        (a, x), n = parts
        return f"({a})**{n}", x**n

    def call(parts):
        name, (a, x) = parts
        return f"{name}({a})", FLOAT_FUNCTIONS[name](x)

    def choice(parts):
        (a, x), (bound, limit), (b, y) = parts
        value = x if limit > 0.3 else y
        return f"(({a}) if t < ({bound}) else ({b}))", value if abs(limit - 0.3) > 1e-6 else math.nan

    return st.one_of(
        st.tuples(
            st.lists(children, min_size=2, max_size=4),
            st.lists(st.sampled_from(sorted(FLOAT_OPERATORS)), min_size=3, max_size=3),
        ).map(chain),
        children.map(lambda tree: (f"-({tree[0]})", -tree[1])),
        st.tuples(children, st.integers(0, 3)).map(power),
        st.tuples(st.sampled_from(sorted(FLOAT_FUNCTIONS)), children).map(call),
        st.tuples(children, children, children).map(choice),
    ).map(_tame)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.recursive(LEAVES, _grow, max_leaves=6))
def test_trees_agree_with_python_arithmetic(tree):
    text, expected = tree
    assume(math.isfinite(expected))
    try:
        value = parse_expression(text)
    except ParseError as error:  # a constant part that vanishes or overflows, or Piecewise in a condition
        assert any(word in error.problem for word in ("zero", "too large", "Piecewise"))
        return
    got = float(value.subs({t: Rational(3, 10), alpha: Rational(17, 10)}).evalf(30))
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(3*t)**(1/1000003)", "too large a denominator"),
        ("3**(1/1000003)", "too large a denominator"),
        ("log(t, 0)", "the base, is not 0"),
        ("log(t, -2)", "it contains I"),
        ("2**3999*t + x + 2**3999*t + 2**3999*t", "more than 4000 bits"),
    ],
)
def test_what_a_late_simplification_lets_in_is_refused(text, words):
    with pytest.raises(ParseError, match=words):
        parse_expression(text)


def test_a_small_base_of_a_logarithm():
    assert parse_expression("log(t, 1/2)") == -sympy.log(t) / sympy.log(2)
