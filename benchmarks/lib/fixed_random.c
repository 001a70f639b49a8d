// Loaded with LD_PRELOAD into processes whose instructions are counted: random bytes are the same in
// each process. They differ from call to call, because programs try again when a name is taken.

#include <stddef.h>
#include <sys/types.h>

static unsigned long state = 1;

static void
fill(void *buffer, size_t bytes)
{
    unsigned char *at = buffer;
    while (bytes--) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        *at++ = (unsigned char)(state >> 56);
    }
}

int
getentropy(void *buffer, size_t bytes)
{
    fill(buffer, bytes);
    return 0;
}

ssize_t
getrandom(void *buffer, size_t bytes, unsigned int flags)
{
    (void)flags;
    fill(buffer, bytes);
    return (ssize_t)bytes;
}

void
arc4random_buf(void *buffer, size_t bytes)
{
    fill(buffer, bytes);
}
