/*
 * An id whose connection is closed, while the peer has not answered the disconnect. Without it the
 * kernel would not repeat a question that was lost, and the peer would never learn of the end. It
 * goes with the answer, or when the kernel gives up, after a minute or so; of a base that is
 * closed, after a second, unless many of them linger: see linger.c.
 */
#ifndef EVR_EV_LINGER_H
#define EVR_EV_LINGER_H

struct evr_cmid;
struct evr_lingering;
struct evr_slots;

/*
 * Takes the id over. 0, or why it stays where it is. *lingering is where it is, and NULL when it
 * has gone.
 */
int evr_linger(struct evr_cmid *cmid, struct evr_lingering **lingering);
/* The connection goes, and its id is counted in its place until it goes too, or for so long. */
void evr_linger_keep_slot(struct evr_lingering *lingering, struct evr_slots *slots, int ms);

#endif
