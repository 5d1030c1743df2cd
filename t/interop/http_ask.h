/* One HTTP/1.1 connection over an rsocket, for who asks. It dies of what is not right. */
#ifndef EVR_INTEROP_HTTP_ASK_H
#define EVR_INTEROP_HTTP_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

void ask_die(const char *what);
void ask_init(const char *ip, const char *port);
int ask_dial(void);

void ask_send(int fd, const void *bytes, size_t len);
void ask_send_text(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Bytes of the pattern from at on. */
void ask_send_pattern(int fd, size_t at, size_t len);
/* What rsend() and rrecv() return is not judged. */
ssize_t ask_try_send(int fd, size_t at, size_t len);
ssize_t ask_try(int fd, void *to, size_t len);
bool ask_is_pattern(const void *bytes, size_t len, size_t at);

void ask_get(int fd, size_t len);
void ask_post(int fd, size_t len);

/* A line, or all lines up to the empty one, as text. */
void ask_read_line(int fd, char *line, size_t size);
void ask_read_head(int fd, char *head, size_t size);
/* Of an answer that is 200: the length that it tells. */
size_t ask_read_length(int fd);
/* The pattern from at on. */
void ask_read_pattern(int fd, size_t at, size_t len);
/* An answer, its body too. */
void ask_read_answer(int fd, size_t len);

#endif
