/* Scalar functions, extended to the closed interval and beyond the slopes at its ends. */

#define EPS 2.220446049250313e-16

static double clamp(double x, double low, double high) { return x < low ? low : (x > high ? high : x); }

/* Moved off the end points, where only stored limits make sense. */
static double inside(double t) { return clamp(t, 2.2250738585072014e-308, 1.0 - 0x1p-53); }

static double value(double t) {
    return t <= 0.0 ? VALUE_LOW : (t >= 1.0 ? VALUE_HIGH : entropy_value(inside(t)));
}

#ifndef RATE
/* q at a rise r, the distance of a slope to the anchor: 0 at or below the lowest rise, 1 at or above the highest. */
static double prediction(double r) {
    if (!(r > SLOPE_LOW - ANCHOR)) return r != r ? r : 0.0;
    return r >= RISE_HIGH ? 1.0 : clamp(entropy_inverse(r), 0.0, 1.0);
}

/* 1 - q, without cancellation where q is close to 1. */
static double complement(double r) {
    if (!(r > SLOPE_LOW - ANCHOR)) return r != r ? r : 1.0;
    return r >= RISE_HIGH ? 0.0 : clamp(entropy_coinverse(r), 0.0, 1.0);
}

/* q', given q; 0 off the support, by the stored limit at 1. */
static double weight(double p) {
    double w;
    if (!(p > 0.0)) return 0.0;
    w = p >= 1.0 ? 1.0 / CURVATURE_HIGH : entropy_weight(inside(p));
    return w < 1e290 ? w : 1e290;
}
#endif

/* One row of scores of either precision. */

typedef struct {
    const void *scores;
    int single;      /* float, not double */
    size_t classes;  /* entries of the row */
    size_t top;      /* the first largest score */
    size_t real;     /* scores above -inf, or +inf ones where there are any */
    double largest;
    double threshold;    /* tau + anchor, on scores less the largest */
    double other;        /* a second threshold, or the same one */
    double share;        /* of the prediction at `other` */
    double step;         /* a last Newton step, taken in p */
    double total;        /* what predictions are divided by */
    int sure;            /* one class takes everything */
    int bad;             /* NaN, or nothing but -inf */
} row;

static double score(const row *r, size_t j) {
    double x = r->single ? (double)((const float *)r->scores)[j] : ((const double *)r->scores)[j];
    if (isinf(r->largest)) return x == r->largest ? 0.0 : -INFINITY;
    return x - r->largest;
}

#ifndef RATE
/* sum of q(x - u) - 1 with its scale and its derivative; the largest probability enters by its complement. */
static double excess(const row *r, double u, double *scale, double *slope) {
    double rest = 0.0, missing, w = 0.0;
    size_t j;
    for (j = 0; j < r->classes; j++) {
        double p = prediction(score(r, j) - u);
        w += weight(p);
        if (j != r->top) rest += p;
    }
    missing = complement(-u);
    *scale = rest + missing;
    *slope = w;
    return rest - missing;
}

static void find_threshold(row *r) {
    double scale, slope, high, low, u, width;
    int iteration;
    double level = -(entropy_slope(1.0 / (double)r->real));
    high = (level + ANCHOR) + 8 * EPS * (1.0 + fabs(level));
    if (isfinite(RISE_HIGH)) {
        low = -RISE_HIGH;
    } else {
        double distance = 1.0;
        low = high - distance;
        while (excess(r, low, &scale, &slope) < 0.0 && distance < 1e300) {
            distance *= 2.0;
            low = high - distance;
        }
    }
    if (low > high) low = high;
    u = low;
    width = high - low;
    for (iteration = 0;; iteration++) {
        double f = excess(r, u, &scale, &slope);
        double step = slope > 0.0 ? f / slope : f;
        int usable = slope > 0.0 && slope < 1e280;
        int collapsed = high - low <= 2 * EPS * fmax(fabs(low), fabs(high));
        int small = fabs(f) <= 4 * EPS * scale;
        double next;
        r->threshold = r->other = u;
        r->share = 0.0;
        r->step = step;
        if (collapsed && !small) { /* q is so steep that the sum jumps past 1: a mix of both sides sums to 1 */
            double above = excess(r, low, &scale, &slope), below = excess(r, high, &scale, &slope);
            double jump = above - below;
            r->threshold = high;
            r->other = low;
            r->share = jump > 0.0 ? fmin(fmax(-below, 0.0) / jump, 1.0) : 0.5;
            r->step = 0.0;
            return;
        }
        if (small || (usable && fabs(step) <= 0.5 * EPS * fabs(u)) || (f <= 0.0 && u <= low) || iteration == 199) return;
        if (f > 0.0) low = u; else high = u;
        next = u + (usable ? step : INFINITY);
        if (iteration % 3 == 2) {
            double now = high - low;
            if ((!NEWTON || iteration > 30) && now > 0.5 * width) next = INFINITY;
            width = now;
        }
        u = next > low && next < high ? next : 0.5 * (low + high);
    }
}
#endif

/* The prediction of one class of a solved row, before the division by the total. */
static double unscaled(const row *r, size_t j) {
    if (r->bad) return NAN;
    if (r->sure) return j == r->top ? 1.0 : 0.0;
#ifdef RATE
    return exp(RATE * score(r, j));
#else
    {
        double p = prediction(score(r, j) - r->threshold);
        if (r->share > 0.0) p += r->share * (prediction(score(r, j) - r->other) - p);
        return clamp(r->step != 0.0 ? p - weight(p) * r->step : p, 0.0, 1.0);
    }
#endif
}

static row solve(const void *scores, int single, size_t classes) {
    row r = {scores, single, classes, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0, 0};
    size_t j;
    for (j = 0; j < classes; j++) {
        double x = single ? (double)((const float *)scores)[j] : ((const double *)scores)[j];
        if (isnan(x)) { r.bad = 1; return r; }
        if (j == 0 || x > r.largest) { r.largest = x; r.top = j; }
    }
    if (classes == 0 || r.largest == -INFINITY) { r.bad = 1; return r; }
    for (j = 0; j < classes; j++) r.real += score(&r, j) != -INFINITY;
    r.sure = r.real == 1;
    if (r.sure) {
        r.threshold = -(isfinite(RISE_HIGH) ? RISE_HIGH : RISE_MIDDLE);
        return r;
    }
#ifdef RATE
    r.total = 0.0;
    for (j = 0; j < classes; j++) r.total += unscaled(&r, j);
    r.threshold = log(SCALE * r.total) / RATE;
#else
    find_threshold(&r);
    r.total = 0.0;
    for (j = 0; j < classes; j++) r.total += unscaled(&r, j);
#endif
    return r;
}

static double target(const void *y, int single, const long *labels, size_t i, size_t j, size_t classes) {
    if (labels) return (size_t)labels[i] == j ? 1.0 : 0.0;
    return single ? (double)((const float *)y)[i * classes + j] : ((const double *)y)[i * classes + j];
}

/* The loss: sum of (s p - g(p)) - (s y - g(y)), each term at least 0; 1 - p of the top is the sum of the others. */
static double gap(const row *r, const void *y, int single, const long *labels, size_t i) {
    double rest = 0.0, sum = 0.0;
    size_t j;
    if (r->bad) return NAN;
    for (j = 0; j < r->classes; j++)
        if (j != r->top) rest += unscaled(r, j) / r->total;
    for (j = 0; j < r->classes; j++) {
        double x = score(r, j), p = unscaled(r, j) / r->total, t = target(y, single, labels, i, j, r->classes);
        double move = j == r->top ? (1.0 - t) - rest : p - t, at = value(p), term;
        if (x == -INFINITY) {
            if (t > 0.0) return INFINITY;
            continue;
        }
        if (p == t && move == 0.0) continue;
#ifdef HAS_COVALUE
        if (j == r->top) at = rest > 0.0 ? entropy_covalue(inside(rest)) : VALUE_HIGH;
#endif
        term = ((x - r->threshold) + ANCHOR) * move - (at - value(t));
        if (term > 0.0 || isnan(term)) sum += term;
    }
    return sum;
}

static void predict_rows(const void *theta, void *p, size_t rows, size_t classes, int single) {
    long i;
    size_t size = single ? sizeof(float) : sizeof(double);
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (i = 0; i < (long)rows; i++) {
        size_t start = (size_t)i * classes, j;
        row r = solve((const char *)theta + start * size, single, classes);
        for (j = 0; j < classes; j++) {
            double out = unscaled(&r, j) / r.total;
            if (single) ((float *)p)[start + j] = (float)out; else ((double *)p)[start + j] = out;
        }
    }
}

static void value_and_grad_rows(const void *theta, const void *y, const long *labels, void *loss, void *grad,
                                size_t rows, size_t classes, int single) {
    long i;
    size_t size = single ? sizeof(float) : sizeof(double);
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (i = 0; i < (long)rows; i++) {
        size_t start = (size_t)i * classes, j;
        row r = solve((const char *)theta + start * size, single, classes);
        double out = gap(&r, y, single, labels, (size_t)i);
        if (single) ((float *)loss)[i] = (float)out; else ((double *)loss)[i] = out;
        for (j = 0; j < classes; j++) {
            out = unscaled(&r, j) / r.total - target(y, single, labels, (size_t)i, j, classes);
            if (single) ((float *)grad)[start + j] = (float)out; else ((double *)grad)[start + j] = out;
        }
    }
}

/* What the header comment describes. */

void fy_predict(const double *theta, double *p, size_t rows, size_t classes) {
    predict_rows(theta, p, rows, classes, 0);
}

void fy_predictf(const float *theta, float *p, size_t rows, size_t classes) {
    predict_rows(theta, p, rows, classes, 1);
}

void fy_value_and_grad(const double *theta, const double *y, const long *labels, double *loss, double *grad,
                       size_t rows, size_t classes) {
    value_and_grad_rows(theta, y, labels, loss, grad, rows, classes, 0);
}

void fy_value_and_gradf(const float *theta, const float *y, const long *labels, float *loss, float *grad,
                        size_t rows, size_t classes) {
    value_and_grad_rows(theta, y, labels, loss, grad, rows, classes, 1);
}
