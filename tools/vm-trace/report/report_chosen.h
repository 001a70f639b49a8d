#ifndef REPORT_CHOSEN_H
#define REPORT_CHOSEN_H
/* report_chosen.h - choice_check for what a report has read. */
#include "topics/report_data.h"

/* After all is read. `where` as in struct choice_seen. */
enum status report_check_chosen(const char *command, const char *where, struct report *report);
/* Of its files from number `from` up to before `to`: whether the thread is in them. */
enum status report_check_thread(const char *command, const char *where, struct report *report, uint32_t from,
                                uint32_t to);

#endif
