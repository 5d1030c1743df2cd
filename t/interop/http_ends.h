/* Connections of t/interop/http_rsocket.c that end early, beside one that goes on. */
#ifndef EVR_INTEROP_HTTP_ENDS_H
#define EVR_INTEROP_HTTP_ENDS_H

#include <stddef.h>

/* The client leaves within a request, after it, and within an answer, in every way there is. */
void http_leave(int bystander, size_t len);
/* So it does by _exit(). */
void http_vanish(int bystander, size_t len);
/* The server closes behind an answer, and within one. */
void http_closed(int bystander, size_t len);
/* It is killed within an answer. */
void http_killed(int bystander, size_t pid);
/* It closes within a request. */
void http_refused(int bystander, size_t len);
/* Of a server without HTTP, which sends back what it gets; it closes within what it reads. */
void http_echo(int fd, size_t len);
void http_cut(int bystander, size_t len);

#endif
