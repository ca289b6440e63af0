/* Gillespie's algorithm for the Lotka-Volterra process, the same loop as
 * simulators/lotka_volterra_kernels.py: same streams (xoshiro256++ seeded by seed and row), same
 * ziggurat, same record. -DWITH_JUMPS chooses the event by if and else, otherwise by comparisons. */
#include <math.h>
#include <stdint.h>

#define LAYERS 256
static double ends[LAYERS + 1], heights[LAYERS + 1];
static const double R = 7.69711747013104972, V = 0.0039496598225815571993;

void prepare(void) {
    ends[0] = V / exp(-R);
    ends[1] = R;
    for (int i = 2; i < LAYERS; i++) ends[i] = -log(V / ends[i - 1] + exp(-ends[i - 1]));
    ends[LAYERS] = 0.0;
    for (int i = 0; i <= LAYERS; i++) heights[i] = exp(-ends[i]);
}

static inline uint64_t rotate(uint64_t z, int bits) { return (z << bits) | (z >> (64 - bits)); }

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static inline uint64_t next(uint64_t *s) {
    const uint64_t out = rotate(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return out;
}

static inline double uniform(uint64_t *s) { return ((double)(next(s) >> 11) + 0.5) * 0x1p-53; }

static inline double exponential(uint64_t *s) {
    for (;;) {
        const uint64_t word = next(s);
        const int layer = word & 255;
        const double x = (double)(word >> 11) * 0x1p-53 * ends[layer];
        if (x < ends[layer + 1]) return x;
        const double u = uniform(s);
        if (layer == 0) return R - log(u);
        if (heights[layer] + u * (heights[layer + 1] - heights[layer]) < exp(-x)) return x;
    }
}

void simulate(const double *theta, long n, uint64_t seed, int stop, long max_events,
              double interval, int points, float *out, long *events) {
    const uint64_t golden = 0x9E3779B97F4A7C15ull;
    for (long i = 0; i < n; i++) {
        uint64_t s[4], z = mix(mix(seed + golden) ^ ((uint64_t)i * 0x94D049BB133111EBull + golden));
        for (int w = 0; w < 4; w++) s[w] = mix(z += golden);
        const double alpha = theta[4 * i], beta = theta[4 * i + 1];
        const double gamma = theta[4 * i + 2], delta = theta[4 * i + 3];
        double prey = 50.0, predators = 100.0, time = 0.0, next_time = 0.0;
        float *row = out + 2 * points * i;
        int k = 0;
        long count = 0;
        while (count <= max_events) {
            const double both = prey * predators, birth = alpha * prey;
            const double prey_moves = birth + beta * both, loss = prey_moves + gamma * predators;
            const double total = loss + delta * both;
            if (total <= 0.0 || (stop && both == 0.0)) break;
            time += exponential(s) / total;
            while (time > next_time && k < points) {
                row[k] = (float)prey;
                row[points + k] = (float)predators;
                next_time = ++k * interval;
            }
            if (k == points) break;
            const double chosen = uniform(s) * total;
#ifdef WITH_JUMPS
            if (chosen < birth) prey += 1.0;
            else if (chosen < prey_moves) prey -= 1.0;
            else if (chosen < loss) predators -= 1.0;
            else predators += 1.0;
#else
            const int of_prey = chosen < prey_moves;
            prey += of_prey ? (chosen < birth ? 1.0 : -1.0) : 0.0;
            predators += of_prey ? 0.0 : (chosen < loss ? -1.0 : 1.0);
#endif
            count++;
        }
        for (; k < points; k++) {
            row[k] = count > max_events ? NAN : (float)prey;
            row[points + k] = count > max_events ? NAN : (float)predators;
        }
        events[i] = count;
    }
}
