/*
 * Interned texts, the words of the event contract, and the cut of long texts.
 */
#include "harness.h"
#include "vm_trace/base/known_strings.h"
#include "vm_trace/base/strings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 32752 };

static struct vm_trace_string *
intern(const char *text)
{
    return rb_vm_trace_string_intern(text, strlen(text));
}

static void
equal_texts_are_one_string(void **state)
{
    (void)state;
    struct vm_trace_string *a = intern("GuardType(Fixnum)"), *b = intern("GuardType(Fixnum)"), *c = intern("GuardType(Float)");
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_int_not_equal(a->id, c->id);
    assert_int_equal(a->bytes, 17);
    assert_memory_equal(a->text, "GuardType(Fixnum)", 17);
    assert_int_equal(rb_vm_trace_string_count(), 2);
}

static void
text_with_a_nul_is_compared_whole(void **state)
{
    (void)state;
    struct vm_trace_string *a = rb_vm_trace_string_intern("a\0b", 3), *b = rb_vm_trace_string_intern("a\0c", 3);
    assert_ptr_not_equal(a, b);
    assert_ptr_not_equal(a, intern("a"));
}

static void
empty_text_is_a_text(void **state)
{
    (void)state;
    struct vm_trace_string *empty = rb_vm_trace_string_intern("not read", 0);
    assert_non_null(empty);
    assert_int_equal(empty->bytes, 0);
    assert_ptr_equal(empty, intern(""));
}

static void
string_lives_until_its_last_reference_goes(void **state)
{
    (void)state;
    struct vm_trace_string *a = intern("a");
    intern("a");
    rb_vm_trace_string_release(a);
    assert_int_equal(rb_vm_trace_string_count(), 1);
    assert_int_equal(a->refs, 1);
    rb_vm_trace_string_release(a);
    assert_int_equal(rb_vm_trace_string_count(), 0);
    rb_vm_trace_string_release(NULL);
}

static void
freed_id_is_used_again_with_a_new_serial(void **state)
{
    (void)state;
    struct vm_trace_string *old = intern("old");
    uint32_t id = old->id;
    uint64_t serial = old->serial;
    assert_true(serial != 0); /* 0 is what an empty slot of a writer has */
    rb_vm_trace_string_release(old);

    struct vm_trace_string *new = intern("new");
    assert_int_equal(new->id, id);
    assert_true(new->serial != serial);
    /* The same text again is another one, too. */
    rb_vm_trace_string_release(new);
    struct vm_trace_string *again = intern("old");
    assert_int_equal(again->id, id);
    assert_true(again->serial > serial + 1);
}

static void
ten_thousand_strings_are_found_and_their_ids_are_dense(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    static struct vm_trace_string *strings[COUNT];
    static bool seen[COUNT];
    char text[32];
    for (int i = 0; i < COUNT; i++) {
        sprintf(text, "reason %d", i);
        strings[i] = intern(text);
        assert_true(strings[i]->id < COUNT);
        assert_false(seen[strings[i]->id]);
        seen[strings[i]->id] = true;
    }
    for (int i = 0; i < COUNT; i++) { /* after the table grew */
        sprintf(text, "reason %d", i);
        assert_ptr_equal(intern(text), strings[i]);
    }
    assert_int_equal(rb_vm_trace_string_count(), COUNT);
    for (int i = 0; i < COUNT; i++) {
        rb_vm_trace_string_release(strings[i]);
        rb_vm_trace_string_release(strings[i]);
    }
    assert_int_equal(rb_vm_trace_string_count(), 0);
    for (int i = 0; i < COUNT; i++) {
        sprintf(text, "other %d", i);
        assert_true(intern(text)->id < COUNT);
    }
}

static void *
intern_and_release(void *argument)
{
    for (int i = 0; i < 20000; i++) {
        char text[32];
        sprintf(text, "shared %d", i % 37);
        struct vm_trace_string *string = intern(text);
        if (string->bytes != strlen(text) || memcmp(string->text, text, string->bytes) != 0) return "wrong text";
        rb_vm_trace_string_release(string);
    }
    return argument;
}

static void
threads_share_the_table(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, intern_and_release, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *why;
        pthread_join(threads[i], &why);
        assert_null(why);
    }
    assert_int_equal(rb_vm_trace_string_count(), 0);
}

static void
text_of_the_longest_size_is_not_cut(void **state)
{
    (void)state;
    char *text = malloc(LONGEST);
    memset(text, 'x', LONGEST);
    assert_int_equal(rb_vm_trace_string_cut(text, LONGEST), LONGEST);
    assert_int_equal(text[LONGEST - 1], 'x');
    struct vm_trace_string *string = rb_vm_trace_string_intern(text, LONGEST);
    assert_int_equal(string->bytes, LONGEST);
    free(text);
}

/* The note's number and what was kept make up the whole. */
static void
assert_cut_of(size_t bytes, const char *text, size_t cut_bytes)
{
    assert_true(cut_bytes <= LONGEST);
    char end[64] = "";
    memcpy(end, text + cut_bytes - 63, 63);
    char *note = strstr(end, "...[");
    assert_non_null(note);
    size_t missing = 0;
    int length = 0;
    assert_int_equal(sscanf(note, "...[%zu bytes cut]%n", &missing, &length), 1);
    assert_int_equal(length, strlen(note));
    assert_int_equal(cut_bytes - (size_t)length + missing, bytes);
}

static void
longer_text_is_cut_with_a_note(void **state)
{
    (void)state;
    static const size_t sizes[] = { LONGEST + 1, LONGEST + 8, 40000, 1000000 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *text = malloc(sizes[i]);
        memset(text, 'x', sizes[i]);
        struct vm_trace_string *string = rb_vm_trace_string_intern(text, sizes[i]);
        assert_cut_of(sizes[i], string->text, string->bytes);
        assert_true(string->bytes > LONGEST - 64);
        assert_int_equal(text[sizes[i] - 1], 'x'); /* the caller's text is not touched */
        size_t bytes = rb_vm_trace_string_cut(text, sizes[i]);
        assert_int_equal(bytes, string->bytes);
        assert_memory_equal(text, string->text, bytes);
        free(text);
    }
}

/* U+20AC in three bytes, shifted so that each of its bytes falls on the cut once. */
static void
cut_leaves_whole_characters(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        size_t bytes = 40000;
        char *text = malloc(bytes + 3);
        memset(text, 'x', shift);
        for (size_t i = shift; i < bytes; i += 3) memcpy(text + i, "\xE2\x82\xAC", 3);
        size_t cut = rb_vm_trace_string_cut(text, bytes);
        assert_cut_of(bytes, text, cut);
        const char *note = memchr(text, '.', cut);
        assert_non_null(note);
        assert_int_equal((size_t)(note - text - (ptrdiff_t)shift) % 3, 0);
        free(text);
    }
}

/* Continuation bytes only: no place to cut between characters. */
static void
cut_of_what_is_no_text_ends(void **state)
{
    (void)state;
    char *text = malloc(40000);
    memset(text, 0x80, 40000);
    size_t bytes = rb_vm_trace_string_cut(text, 40000);
    assert_true(bytes > 0 && bytes <= LONGEST);
    free(text);
}

static void
known_strings_stand_in_their_order_and_are_different(void **state)
{
    (void)state;
    size_t bytes;
    assert_int_equal(STRING_FRAME_0, 1);
    assert_int_equal(STRING_FRAME_9, 10);
    assert_int_equal(STRING_FRAME_REST, 11);
    assert_string_equal(rb_vm_trace_known_text(STRING_NONE, &bytes), "");
    assert_int_equal(bytes, 0);
    for (int i = 1; i < FIXED_STRINGS; i++) {
        const char *text = rb_vm_trace_known_text((enum known_string)i, &bytes);
        assert_int_equal(bytes, strlen(text));
        assert_true(bytes > 0);
        for (int j = 1; j < i; j++) {
            size_t other;
            assert_string_not_equal(rb_vm_trace_known_text((enum known_string)j, &other), text);
        }
    }
}

static void
known_strings_are_those_of_the_event_contract(void **state)
{
    (void)state;
    static const struct { enum known_string string; const char *text; } contract[] = {
        { STRING_FRAME_0, "0" }, { STRING_FRAME_9, "9" }, { STRING_FRAME_REST, "10+" }, { STRING_INSN, "insn" },
        { STRING_VERSION, "version" }, { STRING_WEIGHT, "weight" }, { STRING_OUTCOME, "outcome" },
        { STRING_SIDE_EXIT, "side_exit" }, { STRING_RECOMPILE_EXIT, "recompile_exit" },
        { STRING_FALLBACK, "fallback" }, { STRING_COMPILE, "compile" }, { STRING_INVALIDATION, "invalidation" },
        { STRING_TRACE, "trace" }, { STRING_SETTINGS, "settings" }, { STRING_LOSS, "loss" },
        { STRING_SITE, "site" }, { STRING_SUMMARY, "summary" }, { STRING_PROFILING, "profiling" },
        { STRING_INVALIDATED, "invalidated" }, { STRING_ALREADY_INVALIDATED, "already_invalidated" },
        { STRING_VERSION_LIMIT, "version_limit" }
    };
    for (size_t i = 0; i < sizeof(contract) / sizeof(*contract); i++) {
        size_t bytes;
        assert_string_equal(rb_vm_trace_known_text(contract[i].string, &bytes), contract[i].text);
    }
}

/* --- clean ------------------------------------------------------------------------------------------- */

static void
assert_clean(const char *text, size_t bytes, const char *expected)
{
    char *copy;
    const char *clean = rb_vm_trace_text_clean(text, &bytes, &copy);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(clean, expected, bytes);
    free(copy);
}

static void
good_text_is_taken_as_it_is(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "a", "größe", "日本", "\xF0\x9F\x98\x80", "\x7F\x01", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        size_t bytes = strlen(texts[i]);
        char *copy;
        assert_ptr_equal(rb_vm_trace_text_clean(texts[i], &bytes, &copy), texts[i]);
        assert_null(copy);
        assert_int_equal(bytes, strlen(texts[i]));
    }
}

static void
bytes_that_are_no_utf_8_are_shown_by_their_codes(void **state)
{
    (void)state;
    assert_clean("\xFF", 1, "\\xFF");
    assert_clean("a\x80z", 3, "a\\x80z");
    assert_clean("\xC0\x80", 2, "\\xC0\\x80");             /* NUL, longer than need be */
    assert_clean("\xE0\x9F\xBF", 3, "\\xE0\\x9F\\xBF");
    assert_clean("\xF0\x8F\xBF\xBF", 4, "\\xF0\\x8F\\xBF\\xBF");
    assert_clean("\xED\xA0\x80", 3, "\\xED\\xA0\\x80");    /* a surrogate */
    assert_clean("\xF4\x90\x80\x80", 4, "\\xF4\\x90\\x80\\x80");
    assert_clean("\xF5\x80\x80\x80", 4, "\\xF5\\x80\\x80\\x80");
    assert_clean("\xE6\x97", 2, "\\xE6\\x97");             /* the end is missing */
    assert_clean("\xE6\x97" "a", 3, "\\xE6\\x97" "a");
    assert_clean("\xC3\xB6\xC3", 3, "\xC3\xB6\\xC3");
}

static void
permanent_text_has_one_reference_however_often_it_is_asked_for(void **state)
{
    (void)state;
    struct vm_trace_string *string = rb_vm_trace_string_permanent("phase", 5);
    for (int i = 0; i < 5; i++) assert_ptr_equal(rb_vm_trace_string_permanent("phase", 5), string);
    assert_int_equal(string->refs, 1);
    rb_vm_trace_string_release(rb_vm_trace_string_intern("phase", 5));
    assert_int_equal(rb_vm_trace_string_count(), 1);
}

static void
permanent_text_takes_no_reference_of_another_owner(void **state)
{
    (void)state;
    struct vm_trace_string *reason = rb_vm_trace_string_intern("phase", 5);
    for (int i = 0; i < 3; i++) assert_ptr_equal(rb_vm_trace_string_permanent("phase", 5), reason);
    struct vm_trace_string *another = rb_vm_trace_string_intern("phase", 5);
    rb_vm_trace_string_release(reason);
    rb_vm_trace_string_release(another);
    assert_int_equal(rb_vm_trace_string_count(), 1);
    assert_int_equal(reason->refs, 1);
    assert_ptr_equal(rb_vm_trace_string_permanent("phase", 5), reason);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(equal_texts_are_one_string),
        isolated_test(text_with_a_nul_is_compared_whole),
        isolated_test(empty_text_is_a_text),
        isolated_test(string_lives_until_its_last_reference_goes),
        isolated_test(freed_id_is_used_again_with_a_new_serial),
        isolated_test(ten_thousand_strings_are_found_and_their_ids_are_dense),
        isolated_test(threads_share_the_table),
        isolated_test(text_of_the_longest_size_is_not_cut),
        isolated_test(longer_text_is_cut_with_a_note),
        isolated_test(cut_leaves_whole_characters),
        isolated_test(cut_of_what_is_no_text_ends),
        isolated_test(known_strings_stand_in_their_order_and_are_different),
        isolated_test(known_strings_are_those_of_the_event_contract),
        isolated_test(good_text_is_taken_as_it_is),
        isolated_test(bytes_that_are_no_utf_8_are_shown_by_their_codes),
        isolated_test(permanent_text_has_one_reference_however_often_it_is_asked_for),
        isolated_test(permanent_text_takes_no_reference_of_another_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
