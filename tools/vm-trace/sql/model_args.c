/* model_args.c - argument sets. Equal sets are stored once. */
#include <string.h>

#include "base/xalloc.h"
#include "sql/model.h"

void
model_arg_from(struct model *model, const struct fxt_arg *arg, struct model_arg *arg_out)
{
    /* Zeroed with its padding, because sets are compared as memory. */
    memset(arg_out, 0, sizeof *arg_out);
    arg_out->key = pool_id(model->pool, arg->name);
    switch (arg->type) {
      case FXT_ARG_INT32:
      case FXT_ARG_UINT32:
      case FXT_ARG_INT64:
      case FXT_ARG_UINT64:
      case FXT_ARG_KOID:
        arg_out->type = MODEL_INT;
        arg_out->integer = arg->i64;
        break;
      case FXT_ARG_DOUBLE:
        arg_out->type = MODEL_REAL;
        arg_out->real = arg->f64;
        break;
      case FXT_ARG_POINTER:
        arg_out->type = MODEL_POINTER;
        arg_out->integer = arg->i64;
        break;
      case FXT_ARG_BOOL:
        arg_out->type = MODEL_BOOL;
        arg_out->integer = arg->boolean;
        break;
      case FXT_ARG_STRING:
        arg_out->type = MODEL_STRING;
        arg_out->string = pool_id(model->pool, arg->string);
        break;
      case FXT_ARG_NULL: /* Perfetto has no null values and keeps the word */
        arg_out->type = MODEL_STRING;
        arg_out->string = pool_intern(model->pool, "null", 4);
        break;
      case FXT_ARG_UNKNOWN:
        arg_out->type = MODEL_STRING;
        arg_out->string = pool_intern(model->pool, "unknown", 7);
        break;
    }
}

unsigned
model_args_of(const struct model *model, uint32_t set, const struct model_arg **args_out)
{
    uint32_t first = model->arg_sets.list[set];
    uint32_t end = set + 1 < model->arg_sets.count ? model->arg_sets.list[set + 1] : model->args.count;
    *args_out = model->args.list + first;
    return end - first;
}

static bool
same(const struct model_arg *a, const struct model_arg *b)
{
    return a->key == b->key && a->type == b->type && memcmp(&a->integer, &b->integer, sizeof a->integer) == 0;
}

static uint64_t
hash_of(const struct model_arg *args, unsigned count)
{
    uint64_t hash = count;
    for (unsigned i = 0; i < count; i++) {
        uint64_t value;
        memcpy(&value, &args[i].integer, sizeof value);
        hash = (hash << 23 | hash >> 41) ^ ((uint64_t)args[i].key << 8 | args[i].type);
        hash = hash_mix(hash + value);
    }
    return hash;
}

static uint64_t
hash_of_set(const void *model, uint32_t set)
{
    const struct model_arg *args;
    unsigned count = model_args_of(model, set, &args);
    return hash_of(args, count);
}

static bool
equal_sets(const struct model *model, uint32_t set, const struct model_arg *args, unsigned count)
{
    const struct model_arg *known;
    if (model_args_of(model, set, &known) != count) return false;
    for (unsigned i = 0; i < count; i++) {
        if (!same(&known[i], &args[i])) return false;
    }
    return true;
}

static uint32_t
find_or_add(struct model *model, const struct model_arg *args, unsigned count)
{
    struct hash_index *index = &model->set_index;
    size_t before = index->slot_count;
    hash_index_reserve(index, model->arg_sets.count, hash_of_set, model);
    budget_charge(reader_budget(model->reader), (index->slot_count - before) * sizeof *index->slots);
    uint32_t *slot = hash_index_first(index, hash_of(args, count));
    while (*slot != 0 && !equal_sets(model, *slot - 1, args, count)) slot = hash_index_next(index, slot);
    if (*slot != 0) return *slot - 1;

    uint32_t set = model->arg_sets.count;
    model_room(model, model->arg_sets.list, model->arg_sets.count, model->arg_sets.capacity);
    model->arg_sets.list[model->arg_sets.count++] = model->args.count;
    for (unsigned i = 0; i < count; i++) {
        model_room(model, model->args.list, model->args.count, model->args.capacity);
        model->args.list[model->args.count] = args[i];
        model->args.list[model->args.count++].set = set;
    }
    *slot = set + 1;
    return set;
}

uint32_t
model_arg_set(struct model *model, uint32_t base, const struct model_arg *args, unsigned count)
{
    /* A slice has the arguments of its begin and its end, at most 30. More can only come from
     * begins that were ended repeatedly; what does not fit is dropped. */
    struct model_arg all[4 * FXT_ARGS_MAX];
    unsigned all_count = 0;
    if (base != MODEL_NONE) {
        const struct model_arg *first;
        all_count = model_args_of(model, base, &first);
        memcpy(all, first, all_count * sizeof *all);
    }
    uint64_t seen = base != MODEL_NONE ? UINT64_MAX : 0; /* one bit per key: most keys occur once and need no search */
    for (unsigned i = 0; i < count; i++) {
        uint64_t bit = UINT64_C(1) << (args[i].key & 63);
        unsigned at = seen & bit ? 0 : all_count;
        seen |= bit;
        while (at < all_count && all[at].key != args[i].key) at++; /* the last value of a repeated key counts */
        if (at == sizeof all / sizeof *all) continue;
        all[at] = args[i];
        if (at == all_count) all_count++;
    }
    return all_count == 0 ? MODEL_NONE : find_or_add(model, all, all_count);
}
