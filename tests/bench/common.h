/* What the mock provider and the load generator share: the clock, memory, growing buffers and timers. */
#ifndef COMMON_H
#define COMMON_H

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void *grown(void *memory, size_t size)
{
    void *larger = realloc(memory, size);
    if (!larger) {
        perror("cannot get memory");
        exit(1);
    }
    return larger;
}

/* Let this process have as many open files as it may. */
static inline void raise_file_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Bytes that wait: those from start to end are left. */
struct buffer {
    char *data;
    size_t start, end, room;
};

static inline size_t left_in(const struct buffer *b)
{
    return b->end - b->start;
}

static inline void append(struct buffer *b, const char *data, size_t size)
{
    if (b->start == b->end)
        b->start = b->end = 0;
    if (b->end + size > b->room) {
        b->room = (b->end + size) * 2;
        b->data = grown(b->data, b->room);
    }
    memcpy(b->data + b->end, data, size);
    b->end += size;
}

/* Timers: a binary heap, the earliest first. A timer is a member of what it is for. */
struct timer {
    uint64_t due; /* ns */
    size_t slot;  /* its place in the heap plus one; 0 when it is not set */
};

static struct timer **heap;
static size_t heap_size, heap_room;

static inline void heap_place(size_t at, struct timer *t)
{
    heap[at] = t;
    t->slot = at + 1;
}

/* Move the timer at this place up or down to where it belongs. */
static inline void heap_settle(size_t at)
{
    struct timer *t = heap[at];
    while (at > 0 && heap[(at - 1) / 2]->due > t->due) {
        heap_place(at, heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap_size && heap[child + 1]->due < heap[child]->due)
            child++;
        if (child >= heap_size || heap[child]->due >= t->due)
            break;
        heap_place(at, heap[child]);
        at = child;
    }
    heap_place(at, t);
}

static inline void unschedule(struct timer *t)
{
    if (!t->slot)
        return;
    size_t at = t->slot - 1;
    t->slot = 0;
    if (at != --heap_size) {
        heap_place(at, heap[heap_size]);
        heap_settle(at);
    }
}

static inline void schedule(struct timer *t, uint64_t due)
{
    unschedule(t);
    if (heap_size == heap_room) {
        heap_room = heap_room ? heap_room * 2 : 1024;
        heap = grown(heap, heap_room * sizeof(struct timer *));
    }
    t->due = due;
    heap_place(heap_size++, t);
    heap_settle(heap_size - 1);
}

/* Take out and return the earliest timer that is due; NULL when there is none. */
static inline struct timer *pop_due(uint64_t now)
{
    if (!heap_size || heap[0]->due > now)
        return NULL;
    struct timer *t = heap[0];
    unschedule(t);
    return t;
}

/* Return how long to sleep until the earliest timer; NULL for ever. */
static inline struct timespec *until_due(struct timespec *span)
{
    if (!heap_size)
        return NULL;
    uint64_t now = now_ns(), rest = heap[0]->due > now ? heap[0]->due - now : 0;
    *span = (struct timespec){.tv_sec = (time_t)(rest / 1000000000u), .tv_nsec = (long)(rest % 1000000000u)};
    return span;
}

/* Print a text as JSON; what is not plain ASCII becomes a question mark. */
static inline void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(*text < 32 || *text > 126 ? '?' : *text);
    putchar('"');
}

#endif
