/* How many queue pairs, completion queues, regions and ids there are, of whoever is there. */
#ifndef RS_HOSTILE_OBJECTS_H
#define RS_HOSTILE_OBJECTS_H

unsigned int hostile_objects(void);

#endif
