/*
 * A load generator for the benchmarks: chat completions over kept-alive connections, one thread, epoll.
 *
 *     load MODE --port P --model M [--path /v1/chat/completions] [--key K] [--connections 1] [--seconds 2]
 *          [--warm-up 0.5] [--chunks 1] [--ramp 4000]
 *
 * plain    each connection asks, reads the answer and asks again
 * get      the same with GET of --path; any answer of status 200 is good
 * stream   the same with streamed answers of --chunks chunks each
 * hold     opens --connections streams and holds them until standard input ends
 * leave    opens them, and leaves --seconds after all of them have begun
 *
 * Connections are opened at --ramp per second. Samples are taken in --seconds after --warm-up; then requests that
 * are under way are read to their end. Every answer is checked whole (see answer.h), also those of the warm-up.
 * plain, get and stream print {"window":"began"} and {"window":"ended"} when the samples begin and end; hold and leave
 * print {"held":N} when all streams have begun. The last line on standard output is the result, JSON.
 */
#include "common.h"

#include "answer.h"
#include "histogram.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 262144, MARKER_SIZE = 16, MOST_ERRORS = 10000 };

static const uint64_t SECOND = 1000000000u, RETRY = SECOND / 20, GRACE = 15 * SECOND;

struct conn {
    struct timer timer; /* the first member: a timer that is due is its connection */
    struct answer answer;
    int fd;
    bool is_active, is_connecting, is_reused, is_retried;
    size_t sent;
    char *request;
    char marker[MARKER_SIZE + 1];
};

static struct options {
    const char *mode, *path, *key, *model;
    int port, connections, chunks;
    double seconds, warm_up, ramp;
    bool is_streamed, is_held, is_get;
} options = {.path = "/v1/chat/completions", .connections = 1, .seconds = 2, .warm_up = 0.5, .chunks = 1, .ramp = 4000};

static struct conn *conns;
static int poller, active, held, settled;
static uint64_t window_began, window_ended, serial;
static bool is_over;
static char *request_template;
static size_t request_size, marker_at;
static struct histogram total, first, transit;
static uint64_t ok, all_ok, chunks, all_chunks, reopened, all_errors, errors[FAULTS];

static void start(struct conn *c, uint64_t now);

static bool in_window(uint64_t now)
{
    return now >= window_began && now < window_ended;
}

static void chunk_arrived(struct answer *a, uint64_t sent, uint64_t now)
{
    all_chunks++;
    if (options.is_held && a->chunks == 1) {
        held++;
        settled++;
    }
    if (!options.is_held && !in_window(now))
        return;
    chunks++;
    record(&transit, now > sent ? now - sent : 0);
    if (a->chunks == 1)
        record(&first, now - a->began);
}

static void hang_up(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->is_reused = false;
}

static void end_request(struct conn *c)
{
    active -= c->is_active;
    c->is_active = false;
    if (options.is_held && c->answer.chunks)
        held--;
    else if (options.is_held)
        settled++;
}

static void fail(struct conn *c, enum fault fault)
{
    errors[fault]++;
    all_errors++;
    end_request(c);
    hang_up(c);
    if (all_errors >= MOST_ERRORS)
        is_over = true;
    if (!options.is_held && !is_over)
        schedule(&c->timer, now_ns() + RETRY);
}

static void finish(struct conn *c, uint64_t now)
{
    enum fault fault = judge(&c->answer, options.is_get ? 0 : options.chunks, now);
    if (fault) {
        fail(c, fault);
        return;
    }
    end_request(c);
    all_ok++;
    if (in_window(now)) {
        ok++;
        record(&total, now - c->answer.began);
    }
    c->is_reused = true;
    if (c->answer.closes || c->answer.state == UNTIL_CLOSE)
        hang_up(c);
    if (!options.is_held && !is_over)
        start(c, now);
}

/* A kept-alive connection may have been closed before the request came: ask once more. */
static void lost(struct conn *c, enum fault fault)
{
    bool is_stale = c->is_reused && !c->is_retried && c->answer.state == HEAD && !c->answer.text_size;
    if (!is_stale) {
        fail(c, fault);
        return;
    }
    uint64_t began = c->answer.began;
    reopened++;
    end_request(c);
    hang_up(c);
    start(c, began);
    c->is_retried = true;
}

static void watch(struct conn *c, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(poller, operation, c->fd, &event);
}

static void send_rest(struct conn *c)
{
    while (c->sent < request_size) {
        ssize_t done = send(c->fd, c->request + c->sent, request_size - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno == EAGAIN) {
            watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            return;
        }
        if (done < 0) {
            lost(c, CONNECT);
            return;
        }
        c->sent += (size_t)done;
    }
}

static void dial(struct conn *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->fd < 0) {
        fail(c, CONNECT);
        return;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->is_connecting = true;
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) {
        fail(c, CONNECT);
        return;
    }
    watch(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

static void start(struct conn *c, uint64_t now)
{
    snprintf(c->marker, sizeof c->marker, "%04x-%011" PRIx64, (unsigned)(c - conns) & 0xffff,
             serial++ & 0xfffffffffffu);
    if (!options.is_get)
        memcpy(c->request + marker_at, c->marker, MARKER_SIZE);
    begin_answer(&c->answer, options.is_streamed, options.is_get ? NULL : c->marker, now);
    c->sent = 0;
    c->is_retried = false;
    c->is_active = true;
    active++;
    if (c->fd < 0)
        dial(c);
    else
        send_rest(c);
}

static void receive(struct conn *c)
{
    static char data[READ_SIZE + 1];
    ssize_t size = recv(c->fd, data, READ_SIZE, MSG_DONTWAIT);
    uint64_t now = now_ns();
    if (size < 0 && errno == EAGAIN)
        return;
    if (!c->is_active) {
        hang_up(c);
        return;
    }
    if (size <= 0) {
        if (size == 0 && c->answer.state == UNTIL_CLOSE)
            finish(c, now);
        else
            lost(c, CUT);
        return;
    }
    data[size] = 0;
    size_t used = feed_answer(&c->answer, data, (size_t)size, now);
    if (used < (size_t)size)
        blame(&c->answer, GARBLED, data + used, (size_t)size - used);
    if (c->answer.state == WHOLE)
        finish(c, now);
}

static void handle(struct conn *c, uint32_t events)
{
    if (c->is_connecting) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        c->is_connecting = false;
        watch(c, EPOLL_CTL_MOD, EPOLLIN);
        if (error)
            fail(c, CONNECT);
        else
            send_rest(c);
        return;
    }
    if ((events & EPOLLOUT) && c->sent < request_size) {
        watch(c, EPOLL_CTL_MOD, EPOLLIN);
        send_rest(c);
    } else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        receive(c);
    }
}

static void write_get(void)
{
    char *request;
    request_size = (size_t)asprintf(&request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s%s%s\r\n", options.path,
                                    options.port, options.key ? "Authorization: Bearer " : "",
                                    options.key ? options.key : "", options.key ? "\r\n" : "");
    request_template = request;
}

static void write_template(void)
{
    static const char story[] = "Write a short story about a lighthouse keeper who finds a letter in a bottle.";
    char *body, *request;
    int size = asprintf(&body,
                        "{\"model\":\"%s\",\"messages\":[{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"},"
                        "{\"role\":\"user\",\"content\":\"%s %s %s [[%0*d]]\"}]%s}",
                        options.model, story, story, story, MARKER_SIZE, 0,
                        options.is_streamed ? ",\"stream\":true" : "");
    request_size = (size_t)asprintf(&request,
                                    "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s%s%sContent-Type: application/json\r\n"
                                    "Content-Length: %d\r\n\r\n%s",
                                    options.path, options.port, options.key ? "Authorization: Bearer " : "",
                                    options.key ? options.key : "", options.key ? "\r\n" : "", size, body);
    free(body);
    marker_at = (size_t)(strstr(request, "[[") + 2 - request);
    request_template = request;
}

static void open_all(uint64_t began)
{
    conns = grown(NULL, (size_t)options.connections * sizeof *conns);
    memset(conns, 0, (size_t)options.connections * sizeof *conns);
    for (int i = 0; i < options.connections; i++) {
        conns[i].fd = -1;
        conns[i].request = strdup(request_template);
        schedule(&conns[i].timer, began + (uint64_t)(i / options.ramp * (double)SECOND));
    }
}

/* Handle what happens until this time, or until nothing is under way any more; false when input has ended. */
static bool run(uint64_t end, bool is_draining)
{
    static struct epoll_event events[1024];
    for (uint64_t now; (now = now_ns()) < end && !(is_draining ? !active : is_over);) {
        for (struct timer *t; !is_draining && (t = pop_due(now));)
            start((struct conn *)t, now);
        if (options.is_held && settled >= options.connections)
            return true;
        struct timespec span, rest = {.tv_sec = (time_t)((end - now) / SECOND), .tv_nsec = (long)((end - now) % SECOND)};
        struct timespec *until = is_draining ? NULL : until_due(&span);
        if (!until || until->tv_sec > rest.tv_sec || (until->tv_sec == rest.tv_sec && until->tv_nsec > rest.tv_nsec))
            until = &rest;
        int ready = epoll_pwait2(poller, events, 1024, until, NULL);
        for (int i = 0; i < ready; i++) {
            struct conn *c = events[i].data.ptr;
            if (!c)
                return false;
            if (c->fd >= 0)
                handle(c, events[i].events);
        }
    }
    return true;
}

static void tell_window(const char *what)
{
    printf("{\"window\":\"%s\"}\n", what);
    fflush(stdout);
}

static void run_measured(uint64_t began)
{
    window_began = began + (uint64_t)(options.warm_up * (double)SECOND);
    window_ended = window_began + (uint64_t)(options.seconds * (double)SECOND);
    run(window_began, false);
    tell_window("began");
    run(window_ended, false);
    tell_window("ended");
    is_over = true;
    run(now_ns() + GRACE, true);
    for (int i = 0; i < options.connections; i++)
        if (conns[i].is_active)
            fail(&conns[i], STUCK);
}

static void run_held(uint64_t began)
{
    uint64_t limit = began + (uint64_t)(options.connections / options.ramp * (double)SECOND) + GRACE;
    run(limit, false);
    printf("{\"held\":%d}\n", held);
    fflush(stdout);
    settled = -2 * options.connections;
    if (!strcmp(options.mode, "leave")) {
        run(now_ns() + (uint64_t)(options.seconds * (double)SECOND), false);
        return;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, STDIN_FILENO, &event);
    run(UINT64_MAX, false);
}

static void print_result(void)
{
    printf("{\"mode\":\"%s\",\"connections\":%d,\"seconds\":%.3f,\"ok\":%" PRIu64 ",\"requests_per_second\":%.2f,"
           "\"chunks\":%" PRIu64 ",\"chunks_per_second\":%.2f,\"all_ok\":%" PRIu64 ",\"all_chunks\":%" PRIu64
           ",\"held\":%d,\"reopened\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"faults\":{",
           options.mode, options.connections, options.seconds, ok, (double)ok / options.seconds, chunks,
           (double)chunks / options.seconds, all_ok, all_chunks, held, reopened, all_errors);
    for (int i = 1; i < FAULTS; i++)
        printf("%s\"%s\":%" PRIu64, i > 1 ? "," : "", fault_names[i], errors[i]);
    printf("}");
    print_histogram("total_ms", &total);
    print_histogram("first_ms", &first);
    print_histogram("transit_ms", &transit);
    printf(",\"sample\":");
    print_text(sample);
    printf("}\n");
}

static bool read_options(int count, char **arguments)
{
    static const struct option names[] = {
        {"port", 1, 0, 'p'},    {"path", 1, 0, 'a'},    {"key", 1, 0, 'k'},    {"model", 1, 0, 'm'}, {"connections", 1, 0, 'c'},
        {"seconds", 1, 0, 's'}, {"warm-up", 1, 0, 'w'}, {"chunks", 1, 0, 'x'}, {"ramp", 1, 0, 'r'},  {0}};
    for (int o; (o = getopt_long(count, arguments, "", names, NULL)) != -1;)
        switch (o) {
        case 'p': options.port = atoi(optarg); break;
        case 'a': options.path = optarg; break;
        case 'k': options.key = optarg; break;
        case 'm': options.model = optarg; break;
        case 'c': options.connections = atoi(optarg); break;
        case 's': options.seconds = atof(optarg); break;
        case 'w': options.warm_up = atof(optarg); break;
        case 'x': options.chunks = atoi(optarg); break;
        case 'r': options.ramp = atof(optarg); break;
        default: return false;
        }
    options.mode = optind == count - 1 ? arguments[optind] : "";
    options.is_held = !strcmp(options.mode, "hold") || !strcmp(options.mode, "leave");
    options.is_streamed = options.is_held || !strcmp(options.mode, "stream");
    options.is_get = !strcmp(options.mode, "get");
    bool is_known = options.is_streamed || options.is_get || !strcmp(options.mode, "plain");
    return is_known && options.port && options.model && options.connections > 0 && options.seconds > 0 && options.ramp > 0;
}

int main(int count, char **arguments)
{
    if (!read_options(count, arguments)) {
        fprintf(stderr, "usage: load plain|get|stream|hold|leave --port P --model M [options]; see the head of load.c\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    raise_file_limit();
    poller = epoll_create1(0);
    uint64_t began = now_ns();
    if (options.is_get)
        write_get();
    else
        write_template();
    open_all(began);
    if (options.is_held)
        run_held(began);
    else
        run_measured(began);
    print_result();
    return 0;
}
