/*
 * A mock model provider for the benchmarks: OpenAI chat completions, one thread, epoll.
 *
 *     mock PORT MODEL...       (PORT 0 takes a free one; the port is printed on standard output)
 *
 * POST .../chat/completions   an answer, whole or streamed
 * GET .../models              the models named on the command line
 * GET /health                 {}
 * GET /stats                  {"connections":N,"answers":N}, the answers being those in progress
 *
 * The name of a model carries its behaviour: m[-c<chunks>][-i<ms between chunks>][-d<ms before the first>].
 * So m-c50-i10 streams 50 chunks, one each 10 ms; without -i they come as fast as they can be written.
 * Three more words make a faulty answer, to check the checker: -mixed (the last chunk carries a foreign
 * marker), -lost (the last chunk is left out), -cut (no [DONE], the connection is closed).
 *
 * Each chunk carries @<send time, CLOCK_MONOTONIC ns, 19 digits>@<marker>@<number of the chunk>@. The marker is
 * the last [[...]] in the request's body, which the load generator puts into the last user message.
 */
#include "common.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MARKER_SIZE = 40,
    MODEL_SIZE = 64,
    EVENT_SIZE = 1024,
    READ_SIZE = 65536,
    PAUSE_SIZE = 65536, /* unsent bytes at which an unpaced stream waits for its reader */
    TURN_CHUNKS = 4,    /* chunks that an unpaced stream may write before another has its turn */
};

struct conn {
    struct timer timer; /* the first member: a timer that is due is its connection */
    int fd;
    struct buffer in, out;
    bool is_busy, is_streamed, wants_usage, is_mixed, is_cut;
    int chunks, sent;
    uint64_t interval, delay; /* ns */
    char model[MODEL_SIZE], marker[MARKER_SIZE];
};

static int poller;
static long connections, answers;
static char model_list[READ_SIZE];

static void drop(struct conn *c)
{
    unschedule(&c->timer);
    close(c->fd);
    connections--;
    answers -= c->is_busy;
    free(c->in.data);
    free(c->out.data);
    free(c);
}

static void watch(struct conn *c, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | (left_in(&c->out) ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poller, operation, c->fd, &event);
}

/* Send now, or keep what the socket does not take. False when the connection is dead. */
static bool put(struct conn *c, const char *data, size_t size)
{
    if (!left_in(&c->out)) {
        ssize_t done = send(c->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno != EAGAIN)
            return false;
        if (done > 0) {
            data += done;
            size -= (size_t)done;
        }
        if (!size)
            return true;
    }
    append(&c->out, data, size);
    watch(c, EPOLL_CTL_MOD);
    return true;
}

static bool flush(struct conn *c)
{
    ssize_t done = send(c->fd, c->out.data + c->out.start, left_in(&c->out), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0)
        return errno == EAGAIN;
    c->out.start += (size_t)done;
    if (!left_in(&c->out))
        watch(c, EPOLL_CTL_MOD);
    return true;
}

static bool put_whole(struct conn *c, const char *status, const char *body)
{
    static char text[2 * READ_SIZE];
    int size = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                        status, strlen(body), body);
    return put(c, text, (size_t)size);
}

static bool put_event(struct conn *c, const char *payload)
{
    char text[2 * EVENT_SIZE];
    int size = snprintf(text, sizeof text, "%zx\r\ndata: %s\n\n\r\n", strlen(payload) + 8, payload);
    return put(c, text, (size_t)size);
}

static bool put_choice(struct conn *c, const char *delta, const char *reason)
{
    char text[EVENT_SIZE];
    snprintf(text, sizeof text,
             "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"%s\","
             "\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}",
             c->model, delta, reason);
    return put_event(c, text);
}

static bool put_chunk(struct conn *c)
{
    char delta[EVENT_SIZE / 2];
    bool is_foreign = c->is_mixed && c->sent == c->chunks - 1;
    snprintf(delta, sizeof delta, "{\"content\":\"@%019" PRIu64 "@%s@%d@\"}", now_ns(),
             is_foreign ? "another-request" : c->marker, c->sent);
    c->sent++;
    return put_choice(c, delta, "null");
}

static bool put_end(struct conn *c)
{
    answers -= c->is_busy;
    c->is_busy = false;
    if (c->is_cut)
        return false;
    char usage[EVENT_SIZE];
    snprintf(usage, sizeof usage,
             "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"%s\","
             "\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":%d,\"total_tokens\":%d}}",
             c->model, c->sent, c->sent + 10);
    return put_choice(c, "{}", "\"stop\"") && (!c->wants_usage || put_event(c, usage)) && put_event(c, "[DONE]") &&
           put(c, "0\r\n\r\n", 5);
}

static bool put_answer(struct conn *c)
{
    char body[EVENT_SIZE];
    snprintf(body, sizeof body,
             "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"%s\","
             "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"@%019" PRIu64 "@%s@0@ "
             "The keeper read the letter twice, put it back and let the tide take the bottle. Some words are meant "
             "for whoever needs them next, he thought, and he went up the stairs to light the lamp for the night.\"},"
             "\"logprobs\":null,\"finish_reason\":\"stop\"}],"
             "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":40,\"total_tokens\":50}}",
             c->model, now_ns(), c->marker);
    answers -= c->is_busy;
    c->is_busy = false;
    return put_whole(c, "200 OK", body);
}

/* Write what is due. False when the connection is to be dropped. */
static bool advance(struct conn *c)
{
    if (!c->is_streamed)
        return put_answer(c);
    if (!c->sent && !put_choice(c, "{\"role\":\"assistant\",\"content\":\"\"}", "null"))
        return false;
    int turn = c->interval ? 1 : TURN_CHUNKS;
    while (turn-- && c->sent < c->chunks)
        if (!put_chunk(c))
            return false;
    if (c->sent >= c->chunks)
        return put_end(c);
    if (c->interval)
        schedule(&c->timer, c->timer.due + c->interval);
    else if (left_in(&c->out) < PAUSE_SIZE)
        schedule(&c->timer, now_ns());
    return true; /* a paused stream goes on when its bytes are out */
}

static uint64_t number_after(const char *name, char letter, uint64_t otherwise)
{
    for (const char *p = name; (p = strchr(p, '-')); p++)
        if (p[1] == letter && p[2] >= '0' && p[2] <= '9')
            return strtoull(p + 2, NULL, 10);
    return otherwise;
}

/* Find the value of a member, by its first name in the body; NULL when it is not there. */
static const char *value_of(const char *body, const char *quoted_name)
{
    const char *p = strstr(body, quoted_name);
    return p ? p + strlen(quoted_name) + strspn(p + strlen(quoted_name), " :\t\r\n") : NULL;
}

static bool is_true(const char *body, const char *quoted_name)
{
    const char *value = value_of(body, quoted_name);
    return value && *value == 't';
}

static void read_marker(struct conn *c, const char *body)
{
    snprintf(c->marker, sizeof c->marker, "-");
    const char *last = NULL;
    for (const char *p = body; (p = strstr(p, "[[")); p += 2)
        last = p + 2;
    const char *end = last ? strstr(last, "]]") : NULL;
    if (end && end - last < MARKER_SIZE)
        snprintf(c->marker, sizeof c->marker, "%.*s", (int)(end - last), last);
}

static bool begin(struct conn *c, const char *body)
{
    const char *model = value_of(body, "\"model\"");
    snprintf(c->model, sizeof c->model, "%.*s", model && *model == '"' ? (int)strcspn(model + 1, "\"") : 0,
             model ? model + 1 : "");
    read_marker(c, body);
    c->is_streamed = is_true(body, "\"stream\"");
    c->wants_usage = is_true(body, "\"include_usage\"");
    c->chunks = (int)number_after(c->model, 'c', 100) - (strstr(c->model, "-lost") != NULL);
    c->interval = number_after(c->model, 'i', 0) * 1000000u;
    c->delay = number_after(c->model, 'd', 0) * 1000000u;
    c->is_mixed = strstr(c->model, "-mixed") != NULL;
    c->is_cut = strstr(c->model, "-cut") != NULL;
    c->sent = 0;
    c->is_busy = true;
    answers++;
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                               "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
    if (c->is_streamed && !put(c, head, sizeof head - 1))
        return false;
    c->timer.due = now_ns() + c->delay;
    if (!c->delay)
        return advance(c);
    schedule(&c->timer, c->timer.due);
    return true;
}

static bool route(struct conn *c, const char *head, const char *body)
{
    size_t size = strcspn(head, "\r");
    if (!strncmp(head, "POST ", 5) && memmem(head, size, "/chat/completions ", 18))
        return begin(c, body);
    if (!strncmp(head, "GET ", 4) && memmem(head, size, "/models ", 8))
        return put_whole(c, "200 OK", model_list);
    if (!strncmp(head, "GET /health ", 12))
        return put_whole(c, "200 OK", "{}");
    if (!strncmp(head, "GET /stats ", 11)) {
        char text[100];
        snprintf(text, sizeof text, "{\"connections\":%ld,\"answers\":%ld}", connections, answers);
        return put_whole(c, "200 OK", text);
    }
    return put_whole(c, "404 Not Found", "{\"error\":{\"message\":\"there is no such path here\"}}");
}

/* Return the size of the first request, head and body, or 0 when it is not whole yet; -1 when it has no length. */
static ssize_t request_size(struct conn *c, size_t *body_size)
{
    char *head = c->in.data + c->in.start, *end = memmem(head, left_in(&c->in), "\r\n\r\n", 4);
    if (!end)
        return 0;
    *end = 0;
    const char *length = strcasestr(head, "\ncontent-length:"), *coding = strcasestr(head, "\ntransfer-encoding:");
    *end = '\r';
    if (coding)
        return -1;
    *body_size = length ? strtoul(length + 16, NULL, 10) : 0;
    size_t size = (size_t)(end + 4 - head) + *body_size;
    return left_in(&c->in) < size ? 0 : (ssize_t)size;
}

/* Answer the requests that are whole, one after the other. False when the connection is to be dropped. */
static bool serve(struct conn *c)
{
    size_t body_size = 0;
    while (!c->is_busy && left_in(&c->in)) {
        ssize_t size = request_size(c, &body_size);
        if (size < 0)
            put_whole(c, "411 Length Required", "{\"error\":{\"message\":\"a length is needed\"}}");
        if (size <= 0)
            return size == 0;
        append(&c->in, "", 1); /* room for the zero that ends the body while it is read */
        c->in.end--;
        char *head = c->in.data + c->in.start, next = head[size];
        head[size] = 0;
        c->in.start += (size_t)size;
        bool is_alive = route(c, head, head + (size_t)size - body_size);
        head[size] = next;
        if (!is_alive)
            return false;
    }
    return true;
}

static bool receive(struct conn *c)
{
    static char data[READ_SIZE];
    ssize_t size = recv(c->fd, data, sizeof data, MSG_DONTWAIT);
    if (size <= 0)
        return size < 0 && errno == EAGAIN;
    append(&c->in, data, (size_t)size);
    return serve(c);
}

static void accept_all(int listener)
{
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct conn *c = calloc(1, sizeof *c);
        if (!c)
            exit(1);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->fd = fd;
        connections++;
        watch(c, EPOLL_CTL_ADD);
    }
}

static void handle(struct conn *c, uint32_t events)
{
    bool was_paused = c->is_busy && !c->timer.slot;
    bool is_alive = !(events & EPOLLOUT) || flush(c);
    if (is_alive && was_paused && left_in(&c->out) < PAUSE_SIZE)
        schedule(&c->timer, now_ns());
    if (is_alive && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        is_alive = receive(c);
    if (!is_alive)
        drop(c);
}

static void run_timers(void)
{
    uint64_t now = now_ns();
    for (struct timer *t; (t = pop_due(now));) {
        struct conn *c = (struct conn *)t;
        if (!advance(c) || !serve(c))
            drop(c);
    }
}

static int open_listener(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&address, &size)) {
        perror("mock: cannot listen");
        exit(1);
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void list_models(int count, char **names)
{
    size_t at = (size_t)snprintf(model_list, sizeof model_list, "{\"object\":\"list\",\"data\":[");
    for (int i = 0; i < count && at < sizeof model_list - 300; i++)
        at += (size_t)snprintf(model_list + at, sizeof model_list - at,
                               "%s{\"id\":\"%.*s\",\"object\":\"model\",\"created\":1700000000,\"owned_by\":\"bench\"}",
                               i ? "," : "", MODEL_SIZE - 1, names[i]);
    snprintf(model_list + at, sizeof model_list - at, "]}");
}

int main(int count, char **arguments)
{
    static struct epoll_event events[1024];
    if (count < 2)
        return fprintf(stderr, "usage: mock PORT MODEL...\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    raise_file_limit();
    list_models(count - 2, arguments + 2);
    poller = epoll_create1(0);
    int listener = open_listener(atoi(arguments[1]));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct timespec span;
        int ready = epoll_pwait2(poller, events, 1024, until_due(&span), NULL);
        for (int i = 0; i < ready; i++)
            if (events[i].data.ptr)
                handle(events[i].data.ptr, events[i].events);
            else
                accept_all(listener);
        run_timers();
    }
}
