/* page_first.c - see page_first.h */
#include "report/findings.h"
#include "page/page_first.h"

static void
print_finding(struct page *page, const struct finding *finding)
{
    struct json *json = &page->json;
    json_object(json_line(json));
    json_texts(json, "subject", finding_subject_names[finding->subject], "what", finding->what.ptr, "helps",
               finding->helps.ptr);
    json_key(json, "place");
    page_text(page, finding->place);
    json_key(json, "cause");
    page_text(page, finding->cause);
    if (finding->caller.len > 0) {
        json_key(json, "caller");
        page_text(page, finding->caller);
    }
    json_unsigned(json_key(json, "least_ns"), finding->least_ns);
    json_unsigned(json_key(json, "most_ns"), finding->most_ns);
    if (finding->estimated) json_unsigned(json_key(json, "gain_ns"), finding->gain_ns);
    json_unsigned(json_key(json, "whole_ns"), finding->whole_ns);
    if (finding->of_count > 0) json_tuple(json_key(json, "count"), finding->count, finding->of_count);
    json_end(json);
}

/* The lives of threads, or the time of requests, by state. */
static void
print_where(struct json *json, const struct where *where)
{
    json_unsigned(json_key(json, "whole_ns"), where->whole_ns);
    json_array(json_key(json, "where"));
    for (unsigned i = 0; i < where->count; i++) {
        json_array(json);
        json_c_text(json, where->states[i].name);
        json_unsigned(json, where->states[i].ns);
        json_end(json);
    }
    json_end(json);
}

void
print_page_first(struct page *page, struct report *report)
{
    struct document texts = {0};
    const struct view view = {report, &texts, FINDINGS_MOST};
    struct findings findings = findings_of(&view);
    const struct where *where = &findings.where;
    struct json *json = &page->json;
    json_object(json_key(json_line(json), "first"));
    print_where(json, where);
    json_unsigned(json_key(json, "threads"), where->threads);
    json_bool(json_key(json, "of_main"), where->of_main);
    if (findings.requests.count > 0) {
        json_object(json_key(json, "requests"));
        json_unsigned(json_key(json, "count"), report->endpoints->outer.spans);
        print_where(json, &findings.requests);
        json_end(json);
    }
    json_array(json_key(json, "findings"));
    for (unsigned i = 0; i < findings.count; i++) print_finding(page, &findings.list[i]);
    json_end(json);
    json_end(json);
    document_free(&texts);
}
