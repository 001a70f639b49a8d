/* compiled_texts.c - see compiled_texts.h */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_args.h"
#include "base/hash_index.h"
#include "base/xalloc.h"
#include "fxt/known_strings.h"
#include "topics/compiles/compiled_texts.h"

enum { TEXT_KEYS = 3, HIT_KEYS = 6 };

void
compiled_texts_init(struct compiled_texts *texts, struct budget *budget)
{
    *texts = (struct compiled_texts){.budget = budget};
    row_table_init(&texts->texts, sizeof(struct compiled_text), TEXT_KEYS, COMPILED_TEXTS_MAX);
    row_table_init(&texts->hits, sizeof(struct compiled_hits), HIT_KEYS, COMPILED_HITS_MAX);
}

void
compiled_texts_free(struct compiled_texts *texts)
{
    for (uint32_t i = 0; i < texts->texts.count; i++) {
        struct compiled_text *text = row_table_at(&texts->texts, i);
        free(text->text);
        budget_give_back(texts->budget, text->capacity);
    }
    row_table_free(&texts->texts);
    row_table_free(&texts->hits);
}

static uint32_t
count_lines(struct fxt_string text)
{
    uint32_t lines = text.len > 0 && text.ptr[text.len - 1] != '\n';
    for (uint32_t i = 0; i < text.len; i++) lines += text.ptr[i] == '\n';
    return lines;
}

/* Parts of a text follow each other; scrubbed ones are shorter than their offsets say. A text that is there already,
 * as in a file that has all, begins anew. */
static bool
add_text(struct compiled_texts *texts, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    const uint32_t key[TEXT_KEYS] = {process, event_text(pool, event, STRING_ISEQ),
                                     (uint32_t)event_uint(event, STRING_VERSION, 0)};
    struct compiled_text *text = row_table_get(&texts->texts, key);
    if (text == NULL) {
        texts->uncounted++;
        return true;
    }
    uint64_t offset = event_uint(event, STRING_OFFSET, 0);
    const struct fxt_arg *part = fxt_event_arg(event, STRING_TEXT);
    bool follows = offset == 0 || (text->length > 0 && offset > text->offset);
    text->kind = event_text(pool, event, STRING_KIND);
    text->bytes = event_uint(event, STRING_BYTES, 0);
    text->offset = offset;
    if (offset == 0) text->length = text->lines = 0;
    if (part == NULL || part->type != FXT_ARG_STRING || !follows) return follows;
    size_t length = text->length + part->string.len;
    if (length > text->capacity) {
        if (!budget_take(texts->budget, length - text->capacity)) {
            texts->uncounted++;
            text->lines = UINT32_MAX; /* nobody knows */
            return true;
        }
        text->text = xrealloc(text->text, length, 1);
        text->capacity = length;
    }
    if (part->string.len > 0) memcpy(text->text + text->length, part->string.ptr, part->string.len);
    text->length = length;
    if (text->lines < UINT32_MAX) text->lines += count_lines(part->string);
    return true;
}

static void
add_hits(struct compiled_texts *texts, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    uint32_t line = (uint32_t)event_uint(event, STRING_CODE_LINE, 0);
    if (line == 0) return;
    const uint32_t key[HIT_KEYS] = {process,
                                    event_text(pool, event, STRING_ISEQ),
                                    (uint32_t)event_uint(event, STRING_VERSION, 0),
                                    line,
                                    event_text(pool, event, STRING_KIND),
                                    event_reason(pool, event)};
    struct compiled_hits *hits = row_table_get(&texts->hits, key);
    if (hits == NULL) {
        texts->uncounted++;
        return;
    }
    if (hits->hits == 0) hits->offset = event->offset;
    hits->hits += event_uint(event, STRING_HITS, 0);
    hits->lost_ns += event_uint(event, STRING_LOST_NS, 0);
}

bool
compiled_texts_event(struct compiled_texts *texts, struct pool *pool, uint32_t process, const struct fxt_event *event)
{
    if (event->category.id != STRING_TRACE || event->type != FXT_EVENT_INSTANT) return true;
    if (event->name.id == STRING_CODE) return add_text(texts, pool, process, event);
    if (event->name.id == STRING_SITE) add_hits(texts, pool, process, event);
    return true;
}

bool
compiled_texts_have(struct compiled_texts *texts, const struct compiled_hits *hits)
{
    const uint32_t key[TEXT_KEYS] = {hits->process, hits->iseq, hits->version};
    const struct compiled_text *text = row_table_find(&texts->texts, key);
    return text != NULL && (text->length == 0 || hits->line <= text->lines);
}

static int
compare_texts(const void *left, const void *right, void *context)
{
    (void)context;
    return row_key_compare(left, right, TEXT_KEYS);
}

static int
compare_hits(const void *left, const void *right, void *context)
{
    const struct compiled_hits *a = left, *b = right;
    (void)context;
    int order = row_key_compare(left, right, TEXT_KEYS + 1);
    if (order != 0) return order;
    if (a->hits != b->hits) return a->hits > b->hits ? -1 : 1;
    return row_key_compare(left, right, HIT_KEYS);
}

void
compiled_texts_sort(struct compiled_texts *texts)
{
    row_table_sort(&texts->texts, compare_texts, NULL);
    row_table_sort(&texts->hits, compare_hits, NULL);
}

/* --- what changed -------------------------------------------------------------------------------- */

struct lines {
    struct code_line *lines;
    uint64_t *hashes; /* of each, without the numbers of values and blocks */
    size_t count;
};

static bool
word_p(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The length of "v12" or "bb3" at `at`; 0: there is no such number. */
static size_t
number_length(const struct code_line *line, size_t at)
{
    size_t i = at;
    if (at > 0 && word_p(line->ptr[at - 1])) return 0;
    if (line->ptr[i] == 'v') i++;
    else if (i + 1 < line->len && memcmp(line->ptr + i, "bb", 2) == 0) i += 2;
    else return 0;
    size_t digits = i;
    while (i < line->len && isdigit((unsigned char)line->ptr[i])) i++;
    return i == digits || (i < line->len && word_p(line->ptr[i])) ? 0 : i - at;
}

static uint64_t
hash_without_numbers(const struct code_line *line)
{
    uint64_t hash = line->len > 0 ? 1 : 2;
    for (size_t i = 0; i < line->len;) {
        size_t number = number_length(line, i);
        hash = hash_mix(hash ^ (unsigned char)line->ptr[i]) + 1;
        i += number > 0 ? number : 1;
    }
    return hash;
}

static struct lines
lines_of(const struct compiled_text *text)
{
    struct lines lines = {0};
    size_t room = 1;
    for (size_t i = 0; i < text->length; i++) room += text->text[i] == '\n';
    lines.lines = xcalloc(room, sizeof *lines.lines);
    lines.hashes = xcalloc(room, sizeof *lines.hashes);
    for (size_t at = 0; at < text->length;) {
        const char *from = text->text + at, *end = memchr(from, '\n', text->length - at);
        size_t len = end != NULL ? (size_t)(end - from) : text->length - at;
        struct code_line *line = &lines.lines[lines.count];
        *line = (struct code_line){.ptr = from, .len = len, .number = (uint32_t)lines.count + 1};
        lines.hashes[lines.count++] = hash_without_numbers(line);
        at += len + 1;
    }
    return lines;
}

static void
lines_free(struct lines *lines)
{
    free(lines->lines);
    free(lines->hashes);
}

struct merged {
    struct code_line *lines;
    size_t count;
};

static void
merge_line(struct merged *merged, const struct code_line *line, enum text_change change)
{
    merged->lines[merged->count] = *line;
    merged->lines[merged->count++].change = change;
}

/* Lines `from` to `to` of both, which begin and end with different ones, by their longest common subsequence. Where
 * both are very long, all of the first were removed, and all of the second added. */
static void
merge_middle(struct merged *merged, const struct lines *before, size_t before_end, const struct lines *now,
             size_t now_end, size_t from)
{
    enum { CELLS_MAX = 16 * 1024 * 1024 };
    size_t rows = before_end - from, columns = now_end - from, i = from, j = from;
    bool compared = rows > 0 && columns > 0 && rows < CELLS_MAX / (columns + 1);
    size_t width = columns + 1;
    uint16_t *longest = compared ? xcalloc((rows + 1) * width, sizeof *longest) : NULL;
    for (size_t row = rows; compared && row-- > 0;) {
        for (size_t column = columns; column-- > 0;) {
            uint16_t *cell = &longest[row * width + column], below = cell[width], right = cell[1];
            bool same = before->hashes[from + row] == now->hashes[from + column];
            *cell = same ? (uint16_t)(cell[width + 1] + 1) : below > right ? below : right;
        }
    }
    while (i < before_end && j < now_end) {
        if (longest == NULL) break;
        const uint16_t *cell = &longest[(i - from) * width + (j - from)];
        if (before->hashes[i] == now->hashes[j]) {
            merge_line(merged, &now->lines[j++], TEXT_SAME);
            i++;
        }
        else if (cell[width] >= cell[1]) merge_line(merged, &before->lines[i++], TEXT_REMOVED);
        else merge_line(merged, &now->lines[j++], TEXT_ADDED);
    }
    while (i < before_end) merge_line(merged, &before->lines[i++], TEXT_REMOVED);
    while (j < now_end) merge_line(merged, &now->lines[j++], TEXT_ADDED);
    free(longest);
}

static struct code_line *
compared_lines(const struct compiled_text *before_text, const struct compiled_text *now_text, size_t *count_out)
{
    struct lines now = lines_of(now_text);
    *count_out = now.count;
    if (before_text == NULL) {
        free(now.hashes);
        return now.lines;
    }
    struct lines before = lines_of(before_text);
    size_t begin = 0, before_end = before.count, now_end = now.count;
    while (begin < before_end && begin < now_end && before.hashes[begin] == now.hashes[begin]) begin++;
    while (before_end > begin && now_end > begin && before.hashes[before_end - 1] == now.hashes[now_end - 1]) {
        before_end--;
        now_end--;
    }
    struct merged merged = {.lines = xcalloc(before.count + now.count + 1, sizeof *merged.lines)};
    for (size_t i = 0; i < begin; i++) merge_line(&merged, &now.lines[i], TEXT_SAME);
    merge_middle(&merged, &before, before_end, &now, now_end, begin);
    for (size_t i = now_end; i < now.count; i++) merge_line(&merged, &now.lines[i], TEXT_SAME);
    lines_free(&before);
    lines_free(&now);
    *count_out = merged.count;
    return merged.lines;
}

/* --- what happened in them ------------------------------------------------------------------------------- */

static void
add_line_hits(const struct compiled_texts *texts, const struct compiled_text *text, struct code_line *line)
{
    uint32_t count, first = row_table_range(&texts->hits, (const uint32_t[]){text->process, text->iseq, text->version,
                                                                              line->number}, TEXT_KEYS + 1, &count);
    for (uint32_t i = first; i < first + count; i++) {
        const struct compiled_hits *hits = row_table_at(&texts->hits, i);
        if (i == first) line->reason = hits->reason;
        *(hits->kind == STRING_FALLBACK ? &line->fallbacks : &line->exits) += hits->hits;
        line->lost_ns += hits->lost_ns;
    }
}

static bool
of_interest_p(const struct code_line *line)
{
    return line->change != TEXT_SAME || line->exits > 0 || line->fallbacks > 0;
}

/* The block that a line is in: instructions are indented. */
static void
find_block(const struct code_line *lines, size_t count, size_t at, size_t *from, size_t *to)
{
    *from = at;
    *to = at + 1;
    while (*from > 0 && *lines[*from].ptr == ' ') --*from;
    while (*to < count && lines[*to].len > 0 && *lines[*to].ptr == ' ') ++*to;
}

static void
choose_shown(struct code_line *lines, size_t count, bool first)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        size_t from = i > 0 ? i - 1 : 0, to = i + 2 < count ? i + 2 : count;
        if (!of_interest_p(&lines[i])) continue;
        if (first) find_block(lines, count, i, &from, &to);
        for (size_t at = from; at < to; at++) lines[at].shown = true;
        any = true;
    }
    for (size_t i = 0; i < count && first && !any; i++) lines[i].shown = true;
}

struct code_line *
code_lines(const struct compiled_texts *texts, const struct compiled_text *before, const struct compiled_text *text,
           size_t *count_out)
{
    struct code_line *lines = compared_lines(before, text, count_out);
    for (size_t i = 0; i < *count_out; i++) {
        lines[i].reason = STRING_NONE;
        if (lines[i].change != TEXT_REMOVED) add_line_hits(texts, text, &lines[i]);
    }
    choose_shown(lines, *count_out, before == NULL);
    return lines;
}

uint32_t
code_why_made(const struct version_history *history, uint32_t process, const struct compiled_text *text)
{
    for (uint32_t i = 0; i < history->count; i++) {
        const struct version_step *step = &history->steps[i];
        if (step->process == process && step->iseq == text->iseq && step->kind == STEP_INVALIDATED &&
            step->version + 1 == text->version)
            return step->reason;
    }
    return STRING_NONE;
}

const char *
code_kind(const struct compiled_text *text)
{
    return text->kind == STRING_HIR ? "HIR" : "Code";
}
