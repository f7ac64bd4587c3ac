/* Scalar functions, extended to the closed interval from LOW to HIGH and beyond the slopes at its ends. */

#define EPS 2.220446049250313e-16
#define NOISE 1e-13 /* what is left of a sum that is the total but for rounding */
#define LATE 40 /* steps after which a search for the threshold is no longer an ordinary one */

static double clamp(double x, double low, double high) { return x < low ? low : (x > high ? high : x); }

/* Moved off the end points, where only stored limits make sense. */
static double inside(double t) { return clamp(t, FIRST, LAST); }

static double value(double t) {
    return t <= LOW ? VALUE_LOW : (t >= HIGH ? VALUE_HIGH : entropy_value(inside(t)));
}

#ifndef RATE
#ifndef BOUNDED
#define FAR 1e5 /* rises beyond which closed forms are checked, as squares may be too large for a double */

/* Whether g'(t) is close to r + ANCHOR; of a t that is infinite, or next to the end at 0, it must be on the right side
   at the last double there. */
static int is_solution(double t, double r) {
    double at = copysign(fmin(fmax(fabs(t), LOW == 0.0 ? 1e-300 : 0.0), DBL_MAX), t);
    double found = entropy_slope(at), off = (found - r) - ANCHOR, rate = fabs(at * entropy_curvature(at));
    if (!isfinite(found) || isnan(t)) return 0;
    if (isinf(t)) return copysign(off, off * t) <= 8 * EPS * fabs(r);
    if (LOW == 0.0 && t < 1e-300 && off >= 0.0) return 1;
    return fabs(off) <= 1e-6 * fabs(r) + 1e-6 * fabs(ANCHOR) + 1e-6 * (isfinite(rate) ? rate : 0.0);
}
#endif

/* q at a rise r, the distance of a slope to the anchor: an end of the interval at or beyond the rise there. NaN where
   code cannot compute it. */
static double prediction(double r) {
    double t;
    if (!(r > LOWEST_RISE)) return r != r ? r : LOW;
    if (r >= HIGHEST_RISE) return HIGH;
    t = clamp(entropy_inverse(r), LOW, HIGH);
#ifndef BOUNDED
    if ((fabs(r) > FAR || isinf(t)) && !is_solution(t, r)) return NAN;
#endif
    return t;
}

#ifdef BOUNDED
/* 1 - q, without cancellation where q is close to 1. */
static double complement(double r) {
    double e;
    if (!(r > LOWEST_RISE)) return r != r ? r : 1.0;
    if (r >= RISE_HIGH) return 0.0;
    e = clamp(entropy_coinverse(r), 0.0, 1.0);
    return r >= HIGHEST_RISE && !(e <= EPS) ? 0.0 : e;
}
#endif
#endif

/* One row of scores of either precision. */

typedef struct {
    const void *scores;
    int single;          /* float, not double */
    size_t classes;      /* entries of the row */
    double origin;       /* what is subtracted from the scores: the one at the rank of the total; 0 without one */
    double threshold;    /* tau + anchor, on scores less the origin; the anchor without a total */
    double other;        /* a second threshold, or the same one */
    double share;        /* of the prediction at `other` */
    double step;         /* a last Newton step, taken in p */
    double divisor;      /* of predictions below 1, so that they have the total */
    int crowd;           /* scores of +inf take all of the total */
    int sure;            /* no more classes than the total: all of them take 1 */
    int bad;             /* NaN, or fewer classes than the total */
} row;

static double raw(const row *r, size_t j) {
    return r->single ? (double)((const float *)r->scores)[j] : ((const double *)r->scores)[j];
}

static double score(const row *r, size_t j) {
    double x = raw(r, j);
    if (r->crowd) return x == INFINITY ? 0.0 : -INFINITY;
    return x - r->origin;
}

#if defined(TOTAL) && !defined(RATE)
/* q'(r), given p = q(r), from the left: 0 off the support and beyond the highest rise, by the stored limit at 1. */
static double weight(double p, double r) {
    double w;
    if (!(p > 0.0) || r > RISE_HIGH) return 0.0;
    w = p >= 1.0 ? 1.0 / CURVATURE_HIGH : entropy_weight(inside(p));
    return w < 1e290 ? w : 1e290;
}

/* sum of q(x - u) - TOTAL with its scale and its derivative; what is close to 1 enters by its complement. */
static double excess(const row *r, double u, double *scale, double *slope) {
    double parts = 0.0, size = 0.0, w = 0.0, whole = -TOTAL;
    size_t j;
    for (j = 0; j < r->classes; j++) {
        double rise = score(r, j) - u, p = prediction(rise);
        w += weight(p, rise);
        if (p > 0.5) {
            p = -complement(rise);
            whole += 1.0;
        }
        parts += p;
        size += fabs(p);
    }
    *scale = size + fabs(whole);
    *slope = w;
    return parts + whole;
}

/* Where to halve a bracket; late, by order of magnitude, as the root may be tiny against the first bracket. */
static double middle(double low, double high, int iteration) {
    double small = fmax(fmin(fabs(low), fabs(high)), DBL_MIN), large = fmax(fabs(low), fabs(high));
    double half = 0.5 * low + 0.5 * high;
    if (iteration <= LATE) return half;
    if (low < 0.0 && high > 0.0) return 0.0;
    return large > 4.0 * small ? copysign(sqrt(small) * sqrt(large), half) : half;
}

/* The threshold, where `count` finite scores, 0 at the rank of `left`, share that. Left of the bracket all that are not
   below 0 have q = 1; at its right end those of a higher rank have q = 1, and all others would have the same q. */
static void find_threshold(row *r, double left, double count) {
    double scale, slope, high, low, u, width;
    int iteration, crept = 0;
    double higher = ceil(left) - 1.0, level = -(entropy_slope(inside((left - higher) / (count - higher))));
    high = (level + ANCHOR) + 8 * EPS * (fabs(ANCHOR) + fabs(level));
    low = fmin(isfinite(RISE_HIGH) ? -RISE_HIGH : high - 1.0, high);
    u = low;
    width = fmax(high - low, EPS);
    for (iteration = 0;; iteration++) {
        double f = excess(r, u, &scale, &slope);
        double step = slope > 0.0 ? f / slope : f;
        int usable = slope > 0.0 && slope < 1e280;
        int collapsed = high - low <= EPS * fmax(2.0 * fmax(fabs(low), fabs(high)), DBL_MIN);
        int small = fabs(f) <= 4 * EPS * scale;
        int tiny = usable && fabs(step) <= 0.5 * EPS * fabs(u);
        double next;
        r->threshold = r->other = u;
        r->share = 0.0;
        r->step = step;
        if (f < 0.0 && u <= low && !small && width < 0.25 * DBL_MAX) { /* the root is farther to the left */
            high = u;
            low = u = high - width;
            width *= 2.0;
            iteration = -1;
            continue;
        }
        if (collapsed && !small) { /* q is so steep that the sum jumps past the total: a mix of both sides has it */
            double above = excess(r, low, &scale, &slope), below = excess(r, high, &scale, &slope);
            double jump = above - below;
            r->threshold = high;
            r->other = low;
            r->share = jump > 0.0 ? fmin(fmax(-below, 0.0) / jump, 1.0) : 0.5;
            r->step = 0.0;
            return;
        }
        if (small || (tiny && fabs(f) <= NOISE * scale) || (f <= 0.0 && u <= low) || iteration == 199) return;
        if (f > 0.0) low = u; else high = u;
        next = u + (usable ? step : INFINITY);
        if (tiny) /* no sign of a root where q is steep: creep past it, or halve if that is not far */
            next = crept ? INFINITY : u + copysign(1.5 * EPS * u, f);
        crept = tiny;
        if (iteration % 3 == 2) {
            double now = high - low;
            if (iteration > LATE || (!NEWTON && now > 0.5 * width)) next = INFINITY;
            width = now;
        }
        u = next > low && next < high ? next : middle(low, high, iteration);
    }
}
#endif

/* The prediction of one class of a solved row. */
static double probability(const row *r, size_t j) {
    double x = score(r, j);
    if (r->bad) return NAN;
    if (r->sure) return x > -INFINITY ? 1.0 : 0.0;
#ifdef RATE
    return exp(RATE * x) / r->divisor;
#else
    {
        double p = prediction(x - r->threshold);
#ifdef TOTAL
        if (r->share > 0.0) p += r->share * (prediction(x - r->other) - p);
        if (r->step != 0.0) p = clamp(p - weight(p, x - r->threshold) * r->step, 0.0, 1.0);
        if (p < 1.0) p = clamp(p / r->divisor, 0.0, 1.0);
#endif
        return p;
    }
#endif
}

#ifdef TOTAL
/* The finite score of a rank, 1 for the largest: the range it is in, between two scores, is halved until it is one. */
static double ranked(const row *r, double rank, double least, double largest) {
    while (rank > 1.0 && least < largest) {
        double middle = 0.5 * least + 0.5 * largest, below = least, above = largest, count = 0.0;
        size_t j;
        if (!(middle > least && middle < largest)) middle = least;
        for (j = 0; j < r->classes; j++) {
            double x = raw(r, j);
            if (isinf(x)) continue;
            count += x > middle;
            if (x <= middle && x > below) below = x;
            if (x > middle && x < above) above = x;
        }
        if (count >= rank) least = above; else largest = below;
    }
    return largest;
}
#endif

static row solve(const void *scores, int single, size_t classes) {
    row r = {scores, single, classes, 0.0, ANCHOR, ANCHOR, 0.0, 0.0, 1.0, 0, 0, 0};
#ifdef TOTAL
    double largest = -INFINITY, least = INFINITY, count = 0.0, infinite = 0.0, amount = 0.0;
    size_t j;
    for (j = 0; j < classes; j++) {
        double x = raw(&r, j);
        if (isnan(x)) { r.bad = 1; return r; }
        if (x == INFINITY) infinite += 1.0;
        if (isinf(x)) continue;
        count += 1.0;
        if (x > largest) largest = x;
        if (x < least) least = x;
    }
    r.bad = count + infinite < TOTAL;
    r.crowd = infinite > 0.0 && infinite >= TOTAL;
    r.sure = (r.crowd ? infinite : count + infinite) <= TOTAL;
    if (r.bad || r.sure) return r;
    if (!r.crowd) r.origin = ranked(&r, ceil(TOTAL - infinite), least, largest);
#ifdef RATE
    for (j = 0; j < classes; j++) amount += probability(&r, j);
    r.divisor = amount;
    r.threshold = log(SCALE * amount) / RATE;
#else
    {
        double left = TOTAL;
        find_threshold(&r, r.crowd ? left : left - infinite, r.crowd ? infinite : count);
        for (j = 0; j < classes; j++) {
            double p = probability(&r, j);
            if (p >= 1.0) left -= 1.0; else amount += p;
        }
        if (left > 0.0 && amount > 0.0) r.divisor = amount / left;
        else r.bad = !(fabs(amount - left) <= 1e-12 * TOTAL); /* code cannot compute q there */
    }
#endif
#endif
    return r;
}

static double target(const void *y, int single, const long *labels, size_t i, size_t j, size_t classes) {
#if defined(TOTAL) && !defined(SIMPLEX)
    if (labels) return NAN; /* one label cannot name the whole total */
#endif
    if (labels) return (size_t)labels[i] == j ? 1.0 : 0.0;
    return single ? (double)((const float *)y)[i * classes + j] : ((const double *)y)[i * classes + j];
}

#ifdef BOUNDED
/* 1 - p of a prediction p above 1/2, without cancellation: on the simplex the sum of the others. */
static double missing(const row *r, size_t j, double p) {
#ifdef SIMPLEX
    double others = 0.0;
    size_t k;
    for (k = 0; k < r->classes; k++)
        if (k != j) others += probability(r, k);
    (void)p;
    return others;
#else
    double e = complement(score(r, j) - r->threshold);
    int moved = r->step != 0.0 || r->share > 0.0; /* after q was taken */
    return r->sure || (moved && !(fabs(e - (1.0 - p)) <= 4 * EPS)) ? 1.0 - p : e;
#endif
}
#endif

/* The loss: sum of (s p - g(p)) - (s y - g(y)), each term at least 0. */
static double gap(const row *r, const void *y, int single, const long *labels, size_t i) {
    double sum = 0.0;
    size_t j;
    if (r->bad) return NAN;
    for (j = 0; j < r->classes; j++) {
        double p = probability(r, j), t = target(y, single, labels, i, j, r->classes);
        double s = score(r, j), move = p - t, at = value(p), term;
#ifdef TOTAL
        s = (s - r->threshold) + ANCHOR;
#endif
#ifdef BOUNDED
        if (p > 0.5) {
            double e = missing(r, j, p);
            move = (1.0 - t) - e;
#ifdef HAS_COVALUE
            at = e > 0.0 ? entropy_covalue(inside(e)) : VALUE_HIGH;
#endif
        }
#endif
        if (move == 0.0) continue;
        if (isinf(s) && isfinite(raw(r, j)) && !r->crowd) /* a difference beyond a double */
            term = 2.0 * ((0.5 * raw(r, j) - 0.5 * r->origin) * move);
        else if (isinf(s) || isinf(p) || isinf(s * p)) term = INFINITY;
        else term = s * move - (at - value(t));
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
            double out = probability(&r, j);
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
            out = probability(&r, j) - target(y, single, labels, (size_t)i, j, classes);
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
