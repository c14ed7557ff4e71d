/* Durations in buckets of a thousandth of their size, so that an hour of samples takes no more memory than a second. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include "common.h"

enum { DETAIL_BITS = 10, DETAIL = 1 << DETAIL_BITS, BUCKETS = (64 - DETAIL_BITS) * DETAIL };

struct histogram {
    uint64_t count, largest;
    uint32_t buckets[BUCKETS];
};

/* Small values have a bucket each; each further power of two is divided into DETAIL / 2 buckets. */
static inline size_t bucket_of(uint64_t ns)
{
    if (ns < DETAIL)
        return ns;
    int shift = 64 - __builtin_clzll(ns) - DETAIL_BITS;
    return (size_t)shift * (DETAIL / 2) + (ns >> shift);
}

static inline uint64_t value_of_bucket(size_t at)
{
    if (at < DETAIL)
        return at;
    size_t shift = at / (DETAIL / 2) - 1;
    return ((uint64_t)at - shift * (DETAIL / 2)) << shift;
}

static inline void record(struct histogram *h, uint64_t ns)
{
    h->buckets[bucket_of(ns)]++;
    h->count++;
    if (ns > h->largest)
        h->largest = ns;
}

/* Return the value that this share of the samples does not exceed, in ms. */
static inline double quantile_ms(const struct histogram *h, double share)
{
    uint64_t wanted = (uint64_t)((double)h->count * share), seen = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > wanted || (seen && seen == h->count))
            return (double)value_of_bucket(i) / 1e6;
    }
    return 0;
}

static inline void print_histogram(const char *name, const struct histogram *h)
{
    printf(",\"%s\":", name);
    if (!h->count)
        printf("null");
    else
        printf("{\"count\":%" PRIu64 ",\"p50\":%.4f,\"p90\":%.4f,\"p99\":%.4f,\"max\":%.4f}", h->count,
               quantile_ms(h, 0.5), quantile_ms(h, 0.9), quantile_ms(h, 0.99), (double)h->largest / 1e6);
}

#endif
