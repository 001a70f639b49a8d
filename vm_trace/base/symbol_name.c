/*
 * Names of functions. See symbol_name.h. The tables are those of the System V ABI (gABI 5, dynamic linking),
 * and DT_GNU_HASH, which has no count of symbols: the last one ends the chain of the last bucket.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE 1 /* dl_iterate_phdr */
#endif
#include "vm_trace/base/symbol_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __linux__
# include <link.h>

struct object {
    uintptr_t function, base;
    const ElfW(Dyn) *dynamic; /* NULL: not found */
};

/* The loader knows addresses as numbers. */
static const void *
pointer_to(uintptr_t address)
{
    const void *pointer;
    memcpy(&pointer, &address, sizeof(pointer));
    return pointer;
}

/* Stops at the object that has the function. */
static int
find_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct object *object = data;
    const ElfW(Dyn) *dynamic = NULL;
    bool has = false;
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC) dynamic = pointer_to(begin);
        has |= part->p_type == PT_LOAD && object->function - begin < part->p_memsz;
    }
    if (!has) return 0;
    object->base = info->dlpi_addr;
    object->dynamic = dynamic;
    return 1;
}

static size_t
count_by_gnu_hash(const uint32_t *table)
{
    uint32_t buckets = table[0], first = table[1], last = 0;
    const uint32_t *bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(*table)), *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++) {
        if (bucket[i] > last) last = bucket[i];
    }
    if (last < first) return first;
    while (!(chain[last - first] & 1)) last++;
    return last + 1;
}

const char *
rb_vm_trace_symbol_name(const void *function)
{
    struct object object = { .function = (uintptr_t)function };
    if (!dl_iterate_phdr(find_object, &object) || !object.dynamic) return NULL;
    /* The object stays: whoever asks is about to call the function. */
    const ElfW(Sym) *symbols = NULL;
    const char *texts = NULL;
    const uint32_t *hash = NULL, *gnu_hash = NULL;
    for (const ElfW(Dyn) *entry = object.dynamic; entry->d_tag != DT_NULL; entry++) {
        /* The loader relocates these, except in objects that it may not write, such as the vDSO. */
        uintptr_t at = entry->d_un.d_ptr < object.base ? object.base + entry->d_un.d_ptr : entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB) symbols = pointer_to(at);
        else if (entry->d_tag == DT_STRTAB) texts = pointer_to(at);
        else if (entry->d_tag == DT_HASH) hash = pointer_to(at);
        else if (entry->d_tag == DT_GNU_HASH) gnu_hash = pointer_to(at);
    }
    size_t count = hash ? hash[1] : gnu_hash ? count_by_gnu_hash(gnu_hash) : 0;
    for (size_t i = 0; symbols && texts && i < count; i++) {
        const ElfW(Sym) *symbol = &symbols[i];
        if (symbol->st_shndx == SHN_UNDEF || object.base + symbol->st_value != object.function) continue;
        if ((symbol->st_info & 0xf) == STT_FUNC) return texts + symbol->st_name;
    }
    return NULL;
}
#else
# include <dlfcn.h>

const char *
rb_vm_trace_symbol_name(const void *function)
{
    Dl_info info;
    /* For a static function dladdr finds the exported one before it. */
    return dladdr(function, &info) && info.dli_saddr == function ? info.dli_sname : NULL;
}
#endif
