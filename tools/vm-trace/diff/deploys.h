#ifndef DEPLOYS_H
#define DEPLOYS_H
/* deploys.h - finds the traces of a service before and after its last deploy.
 *
 * A deploy is the moment at which the first process of a version begins. The new version is the one whose deploy is
 * the latest, and the old one that before it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct deploy {
    char **files;        /* of the old version, and then of the new one: the caller's strings */
    uint32_t count;
    uint32_t old_count;
    char *names[2];      /* "shop 42", "shop 43" */
};

/* Reads the events trace/host of the files. `service`: which one, or NULL if there is only one. Prints what is wrong
 * with files, and what is missing for a comparison; the result is empty then. Free with deploy_free. */
enum status deploy_find(struct deploy *deploy, size_t memory_bytes, const char *service, int file_count,
                        char **files);
void deploy_free(struct deploy *deploy);

#endif
