"""What every compiled entropy can do with arrays, and how it is scaled; how it is done is each class's own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy

from .errors import InputError, ParameterError, UnsupportedError
from .ranges import exact_number
from .runtime.target import plainly

if TYPE_CHECKING:
    from typing import Self

NO_PRIOR = "it has no predictions with a prior"


class Methods:
    """Methods on NumPy arrays, over the last axis unless told otherwise; a family takes its parameters with a call."""

    margin: Any
    params: Any
    _arrays: Any  # the functions that read arrays: as_rows, targets, back and back_batch

    def __init__(self) -> None:
        self._bound: dict[Any, Self] = {}
        self._lock = threading.Lock()

    def bind(self, **values: Any) -> Self:
        """The member of the family at these parameter values.

        >>> import fysym
        >>> fysym.catalog.tsallis.bind(alpha=1.5).margin
        2
        """
        if not values:
            return self
        unknown = [name for name in values if name not in self.params]
        if unknown:
            have = ", ".join(self.params) or "none"
            raise ParameterError(
                f"there is no parameter called {unknown[0]!r}, nor such an argument here; the parameters are: {have}"
            )
        try:
            key = tuple((name, type(values[name]), values[name]) for name in sorted(values))
            hash(key)
        except TypeError:
            raise ParameterError(f"parameter values must be numbers; got {values!r}") from None
        bound = self._bound.get(key)
        if bound is None:
            bound = self._member(values)
            with self._lock:
                if len(self._bound) >= 64:
                    self._bound.clear()
                self._bound[key] = bound
        return bound

    def _member(self, values: Mapping[str, Any]) -> Self:
        raise NotImplementedError

    def _call(self, method: str, params: Mapping[str, Any], *args: Any, target: str | None = None, axis: int) -> Any:
        raise NotImplementedError

    def _why_no_margin(self) -> str:
        """Why the margin is None, as the facts say it."""
        theory = getattr(getattr(self, "derivation", None), "theory", None)
        return getattr(theory, "undetermined", {}).get("margin", "not determined")

    def _scaled(self, factor: sympy.Expr) -> Self:
        raise NotImplementedError

    def _require_bound(self) -> None:
        free = self.params
        if free:
            example = ", ".join(f"{name}=..." for name in free)
            raise ParameterError(f"this is a family: bind({example}) first; ranges: {'; '.join(free.values())}")

    def scale(self, c: Any) -> Self:
        """The regularizer of c H: predictions are those of H at the temperature c, and the margin is c times as large.

        >>> import fysym
        >>> fysym.catalog.gini.scale(2).margin
        2
        """
        factor = exact_number(c)
        if not factor.is_positive:
            raise ParameterError(f"the scale must be a positive number, not {factor}")
        return self._scaled(factor)

    def with_margin(self, m: Any) -> Self:
        """H scaled so that the margin is m; for a family, that of each of its members.

        >>> import fysym
        >>> fysym.catalog.tsallis.with_margin(1).bind(alpha=1.25).margin
        1
        """
        wanted = exact_number(m)
        if not wanted.is_positive:
            raise ParameterError(f"the margin must be a positive number, not {wanted}")
        margin = self.margin
        if margin is None:
            raise ParameterError(f"no scale gives this entropy another margin, which is {self._why_no_margin()}")
        if margin.is_infinite:
            raise ParameterError("the margin of this entropy is infinite, so no scale gives it another one")
        return self._scaled(wanted / margin)

    # Numbers

    def predict(
        self, theta: Any, *, axis: int = -1, target: str | None = None, prior: Any = None, **params: Any
    ) -> Any:
        """The probabilities that maximise <theta, p> + H(p).

        With a prior w (a vector of d, or an array like theta) it is <theta, p> + sum_j w_j h(p_j / w_j): Shannon
        gives softmax(theta + log w), and scores of 0 give the prior.

        >>> import fysym
        >>> fysym.catalog.gini.predict([0.0, 0.0, 0.5], prior=[0.5, 0.25, 0.25])
        array([0.4375 , 0.21875, 0.34375])
        """
        if prior is not None:
            bound = self.bind(**params)
            bound._require_bound()
            return plainly(target, NO_PRIOR, lambda: bound._with_prior("predict", theta, None, prior, axis))
        return self._call("predict", params, theta, axis=axis, target=target)

    def loss(
        self,
        theta: Any,
        y: Any,
        *,
        axis: int = -1,
        target: str | None = None,
        cost: Any = None,
        prior: Any = None,
        **params: Any,
    ) -> Any:
        """The Fenchel-Young loss of each row; y are integer labels or proportions.

        With a cost ("zero-one", a vector of d, a (d, d) matrix with a row for each label, or an array like theta) it is
        the largest <theta + cost, p> + H(p), less <theta, y> + H(y): Shannon with "zero-one" is softmax-margin. A cost
        of shape (d, d) is the matrix with a row for each label first, even where theta has that shape.

        >>> import fysym
        >>> gini = fysym.catalog.gini
        >>> gini.loss([2.0, 0.5], 0).item(), gini.loss([2.0, 0.5], 0, cost="zero-one").item()
        (0.0, 0.0625)
        """
        return self._loss("loss", theta, y, axis, target, cost, prior, params)

    def grad(
        self,
        theta: Any,
        y: Any,
        *,
        axis: int = -1,
        target: str | None = None,
        cost: Any = None,
        prior: Any = None,
        **params: Any,
    ) -> Any:
        """The gradient of each row's loss: predict(theta) - y, or predict(theta + cost) - y.

        >>> import fysym
        >>> fysym.catalog.gini.grad([1.0, 0.5, -1.0], 0)
        array([-0.25,  0.25,  0.  ])
        """
        return self._loss("grad", theta, y, axis, target, cost, prior, params)

    def value_and_grad(
        self,
        theta: Any,
        y: Any,
        *,
        axis: int = -1,
        target: str | None = None,
        cost: Any = None,
        prior: Any = None,
        **params: Any,
    ) -> tuple[Any, Any]:
        """loss and grad from one solve.

        >>> import fysym
        >>> loss, grad = fysym.catalog.gini.value_and_grad([1.0, 0.5, -1.0], 1)
        >>> loss.item(), grad.tolist()
        (0.5625, [0.75, -0.75, 0.0])
        """
        return self._loss("value_and_grad", theta, y, axis, target, cost, prior, params)  # type: ignore[no-any-return]

    def _with_prior(self, method: str, theta: Any, y: Any, prior: Any, axis: int) -> Any:
        raise UnsupportedError("a prior needs a separable entropy, sum_j h(p_j)")

    def _loss(
        self,
        method: str,
        theta: Any,
        y: Any,
        axis: int,
        target: str | None,
        cost: Any,
        prior: Any,
        params: Mapping[str, Any],
    ) -> Any:
        bound = self.bind(**params)
        bound._require_bound()
        if cost is not None:
            from .runtime import costs

            try:
                augmented, own = costs.augmented(bound._arrays, theta, y, cost, axis)
            except bound._arrays.InputError as error:
                raise InputError(str(error)) from None
            found = bound._loss(method, augmented, y, axis, target, None, prior, {})
            if method == "grad":
                return found
            return found + own if method == "loss" else (found[0] + own, found[1])
        if prior is not None:
            return plainly(target, NO_PRIOR, lambda: bound._with_prior(method, theta, y, prior, axis))
        return bound._call(method, {}, theta, y, axis=axis, target=target)

    def jvp(self, theta: Any, v: Any, *, axis: int = -1, target: str | None = None, **params: Any) -> Any:
        """The derivative of predict at theta in the direction v.

        >>> import fysym
        >>> fysym.catalog.gini.jvp([1.0, 0.5, -1.0], [1.0, 0.0, 0.0])
        array([ 0.5, -0.5, -0. ])
        """
        return self._call("jvp", params, theta, v, axis=axis, target=target)

    def vjp(self, theta: Any, v: Any, *, axis: int = -1, target: str | None = None, **params: Any) -> Any:
        """v times the Jacobian of predict, which is symmetric.

        >>> import fysym
        >>> fysym.catalog.gini.vjp([1.0, 0.5, -1.0], [1.0, 0.0, 0.0])
        array([ 0.5, -0.5, -0. ])
        """
        return self._call("vjp", params, theta, v, axis=axis, target=target)

    def jacobian(self, theta: Any, *, axis: int = -1, **params: Any) -> Any:
        """The Jacobian of predict for each row, in two last dimensions.

        >>> import fysym
        >>> fysym.catalog.gini.jacobian([1.0, 0.5]).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        return self._call("jacobian", params, theta, axis=axis)

    def threshold(self, theta: Any, *, axis: int = -1, **params: Any) -> Any:
        """The tau of each row: predict is (-h')^{-1}(theta - tau) where that is positive.

        >>> import fysym
        >>> fysym.catalog.gini.threshold([1.0, 0.5, -1.0]).item()
        0.75
        """
        return self._call("threshold", params, theta, axis=axis)

    def conjugate(self, theta: Any, *, axis: int = -1, **params: Any) -> Any:
        """Omega*(theta), the largest value of <theta, p> + H(p).

        >>> import fysym
        >>> fysym.catalog.gini.conjugate([1.0, 0.5, -1.0]).item()
        1.0625
        """
        return self._call("conjugate", params, theta, axis=axis)

    def entropy(self, p: Any, *, axis: int = -1, **params: Any) -> Any:
        """H(p), the sum of h over each row of probabilities.

        >>> import fysym
        >>> fysym.catalog.gini.entropy([0.5, 0.5]).item()
        0.25
        """
        return self._call("entropy", params, p, axis=axis)

    def bregman(self, y: Any, p: Any, *, axis: int = -1, **params: Any) -> Any:
        """The Bregman divergence B(y || p) of Omega = -H.

        >>> import fysym
        >>> fysym.catalog.gini.bregman([1.0, 0.0], [0.5, 0.5]).item()
        0.25
        """
        return self._call("bregman", params, y, p, axis=axis)

    def score(self, p: Any, y: Any, *, axis: int = -1, **params: Any) -> Any:
        """The proper scoring rule S(p; y) = B(y || p) - Omega(y); Gini's is half the Brier score.

        >>> import fysym
        >>> fysym.catalog.gini.score([0.5, 0.5], 0).item()
        0.25
        """
        return self._call("score", params, p, y, axis=axis)
