/* Reads one HTTP answer as its bytes come, and checks it: status, frames, markers, number of chunks, [DONE]. */
#ifndef ANSWER_H
#define ANSWER_H

#include "common.h"

#include <stdbool.h>
#include <strings.h>

enum { TEXT_SIZE = 8192, SAMPLE_SIZE = 300, STAMP_DIGITS = 19 };

enum fault {
    FINE,
    CONNECT, /* the connection was refused or reset before the request was out */
    STATUS,  /* another status than 200, or an error in band */
    CUT,     /* the connection ended within the answer */
    COUNT,   /* more or fewer chunks than there should be */
    NO_DONE, /* the stream did not end with [DONE] */
    MIXED,   /* a chunk of another request, or out of order */
    GARBLED, /* not HTTP, or not a line of an event stream */
    STUCK,   /* not finished when the time was over */
    FAULTS,
};

static const char *const fault_names[FAULTS] = {"",        "connect", "status",  "cut",  "count",
                                                "no_done", "mixed",   "garbled", "stuck"};

struct answer {
    enum { HEAD, LENGTH, UNTIL_CLOSE, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, WHOLE } state;
    enum fault fault;
    bool is_streamed, is_done, closes;
    int status, chunks;
    long left;          /* bytes of the body or of its HTTP chunk that are still to come */
    uint64_t began;     /* ns */
    const char *marker; /* what each chunk of this answer has to carry; NULL for an answer without chunks */
    size_t text_size;   /* of the head, then of a stream's unfinished line, or of a whole body's start */
    char text[TEXT_SIZE];
};

static char sample[SAMPLE_SIZE]; /* the start of the first text that was wrong */

/* Told of each chunk: when it was sent, and when the bytes that held it were read (ns). */
static void chunk_arrived(struct answer *a, uint64_t sent, uint64_t now);

static inline void blame(struct answer *a, enum fault fault, const char *text, size_t size)
{
    if (!a->fault)
        a->fault = fault;
    if (!*sample)
        snprintf(sample, sizeof sample, "%.*s", (int)(size < SAMPLE_SIZE ? size : SAMPLE_SIZE - 1), text);
}

static inline void begin_answer(struct answer *a, bool is_streamed, const char *marker, uint64_t now)
{
    a->state = HEAD;
    a->fault = FINE;
    a->is_streamed = is_streamed;
    a->is_done = a->closes = false;
    a->status = a->chunks = 0;
    a->left = -1;
    a->began = now;
    a->marker = marker;
    a->text_size = 0;
}

/* Read @<send time>@<marker>@<number>@; a text without @ holds no chunk. A byte after the text may be read. */
static inline void read_stamp(struct answer *a, const char *text, size_t size, uint64_t now)
{
    const char *at = memchr(text, '@', size), *end = text + size;
    if (!at)
        return;
    char *rest;
    size_t marker_size = strlen(a->marker);
    uint64_t sent = strtoull(at + 1, &rest, 10);
    bool is_ours = rest - at == STAMP_DIGITS + 1 && end - rest > (long)marker_size + 3 && *rest == '@' &&
                   !memcmp(rest + 1, a->marker, marker_size) && rest[marker_size + 1] == '@';
    if (!is_ours || strtol(rest + marker_size + 2, &rest, 10) != a->chunks || *rest != '@') {
        blame(a, MIXED, text, size);
        return;
    }
    a->chunks++;
    chunk_arrived(a, sent, now);
}

static inline void read_line(struct answer *a, const char *line, size_t size, uint64_t now)
{
    if (size && line[size - 1] == '\r')
        size--;
    if (!size || line[0] == ':')
        return;
    if (size < 6 || memcmp(line, "data: ", 6)) {
        blame(a, GARBLED, line, size);
        return;
    }
    const char *payload = line + 6;
    size -= 6;
    if (size == 6 && !memcmp(payload, "[DONE]", 6))
        a->is_done = true;
    else if (a->is_done || size < 2 || payload[0] != '{' || payload[size - 1] != '}')
        blame(a, GARBLED, payload, size);
    else if (size > 8 && !memcmp(payload, "{\"error\"", 8))
        blame(a, STATUS, payload, size);
    else
        read_stamp(a, payload, size, now);
}

static inline void keep_text(struct answer *a, const char *data, size_t size)
{
    size_t room = TEXT_SIZE - 1 - a->text_size;
    if (size > room) {
        if (a->is_streamed)
            blame(a, GARBLED, data, size);
        size = room;
    }
    memcpy(a->text + a->text_size, data, size);
    a->text_size += size;
    a->text[a->text_size] = 0;
}

static inline void read_content(struct answer *a, const char *data, size_t size, uint64_t now)
{
    const char *end = data + size, *line_end;
    if (!a->is_streamed || a->status != 200) {
        keep_text(a, data, size);
        return;
    }
    while ((line_end = memchr(data, '\n', (size_t)(end - data)))) {
        if (a->text_size) {
            keep_text(a, data, (size_t)(line_end - data));
            read_line(a, a->text, a->text_size, now);
            a->text_size = 0;
        } else {
            read_line(a, data, (size_t)(line_end - data), now);
        }
        data = line_end + 1;
    }
    keep_text(a, data, (size_t)(end - data));
}

static inline void read_head(struct answer *a)
{
    const char *length = strcasestr(a->text, "\ncontent-length:"), *coding = strcasestr(a->text, "\ntransfer-encoding:"),
               *connection = strcasestr(a->text, "\nconnection:");
    a->status = strncmp(a->text, "HTTP/1.1 ", 9) ? 0 : atoi(a->text + 9);
    a->closes = connection && !strncasecmp(connection + 12 + strspn(connection + 12, " "), "close", 5);
    a->state = coding ? CHUNK_SIZE : length ? LENGTH : UNTIL_CLOSE;
    a->left = coding ? 0 : length ? atol(length + 16) : -1;
    if (a->state == LENGTH && !a->left)
        a->state = WHOLE;
    a->text_size = 0;
}

/* Take bytes of the head and return how many. */
static inline size_t feed_head(struct answer *a, const char *data, size_t size)
{
    size_t before = a->text_size, room = TEXT_SIZE - 1 - before;
    size = size < room ? size : room; /* what follows the head is not for here */
    keep_text(a, data, size);
    char *end = memmem(a->text, a->text_size, "\r\n\r\n", 4);
    if (end) {
        size = (size_t)(end + 4 - a->text) - before;
        end[2] = 0;
        read_head(a);
    } else if (a->text_size == TEXT_SIZE - 1) {
        blame(a, GARBLED, a->text, a->text_size);
        a->state = WHOLE;
    }
    return size;
}

static inline int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Take one byte of the lines around the HTTP chunks. */
static inline void feed_frame(struct answer *a, char c)
{
    int digit = hex_digit(c);
    if (a->state == CHUNK_SIZE && digit >= 0)
        a->left = a->left * 16 + digit;
    else if (a->state == CHUNK_SIZE && c == '\n')
        a->state = a->left ? CHUNK_DATA : TRAILER;
    else if (a->state == CHUNK_END && c == '\n')
        a->state = CHUNK_SIZE;
    else if (a->state == TRAILER && c == '\n')
        a->state = WHOLE;
    else if (c != '\r')
        blame(a, GARBLED, "framing of a chunked body", 25);
}

/* Take bytes until the answer is whole and return how many. */
static inline size_t feed_answer(struct answer *a, const char *data, size_t size, uint64_t now)
{
    size_t done = 0;
    while (done < size && a->state != WHOLE) {
        size_t rest = size - done, part = a->left > 0 && (size_t)a->left < rest ? (size_t)a->left : rest;
        if (a->state == HEAD) {
            done += feed_head(a, data + done, rest);
        } else if (a->state == LENGTH || a->state == CHUNK_DATA || a->state == UNTIL_CLOSE) {
            read_content(a, data + done, part, now);
            done += part;
            a->left -= (long)part;
            if (a->state != UNTIL_CLOSE && !a->left)
                a->state = a->state == LENGTH ? WHOLE : CHUNK_END;
        } else {
            feed_frame(a, data[done++]);
        }
    }
    return done;
}

/* Tell what is wrong with an answer that is whole. */
static inline enum fault judge(struct answer *a, int chunks, uint64_t now)
{
    if (a->status != 200)
        blame(a, STATUS, a->text, a->text_size);
    else if (!a->is_streamed && a->marker)
        read_stamp(a, a->text, a->text_size, now);
    else if (a->is_streamed && !a->is_done)
        blame(a, NO_DONE, a->text, a->text_size);
    if (!a->fault && a->chunks != chunks)
        blame(a, COUNT, a->text, a->text_size);
    return a->fault;
}

#endif
