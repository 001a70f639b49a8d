/* path_part.c - see path_part.h */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/path_part.h"
#include "base/xalloc.h"

enum { PART_BYTES = 128 }; /* file names have at most 255, with what is added to such a part */

char *
path_part(struct fxt_string text)
{
    char *part = xcalloc(PART_BYTES + 4, 1), *at = part;
    if (text.len == 0) return free(part), xformat("unknown");
    for (uint32_t i = 0; i < text.len && at < part + PART_BYTES; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        bool plain = isascii(byte) && (isalnum(byte) || strchr("_-", byte) || (byte == '.' && i > 0));
        if (byte != '\0' && plain) *at++ = (char)byte;
        else at += snprintf(at, 4, "%%%02X", byte);
    }
    return part;
}

static bool
make_all(char *path)
{
    for (char *slash = path + 1;; slash++) {
        char byte = *slash;
        if (byte != '/' && byte != '\0') continue;
        *slash = '\0';
        bool there = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = byte;
        if (!there || byte == '\0') return there;
    }
}

bool
make_folders(char *path)
{
    if (make_all(path)) return true;
    char text[256];
    snprintf(text, sizeof text, "cannot be made: %s", strerror(errno));
    file_message(path, text);
    return false;
}
