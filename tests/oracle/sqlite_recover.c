/* SQLite's own recovery, as its shell has it under `.recover`, which Debian's shell is built without.
 *
 *     sqlite_recover recover DAMAGED COPY   writes what can be read to a new file
 *     sqlite_recover pages FILE             lists the pages of a sound file: what they belong to, their kind, their number
 */
#include <stdio.h>
#include <string.h>
#include "sqlite3.h"
#include "sqlite3recover.h"

static int line(void *unused, int count, char **values, char **names) {
  (void)unused, (void)names;
  for (int place = 0; place < count; place++) printf("%s%c", values[place], place + 1 < count ? '|' : '\n');
  return 0;
}

int main(int count, char **arguments) {
  sqlite3 *file = 0;
  if (count < 3 || sqlite3_open(arguments[2], &file) != SQLITE_OK) return 2;
  if (!strcmp(arguments[1], "pages")) {
    return sqlite3_exec(file, "SELECT name, pagetype, pageno FROM dbstat ORDER BY 1, 2, 3", line, 0, 0);
  }
  sqlite3_recover *recovery = sqlite3_recover_init(file, "main", arguments[3]);
  sqlite3_recover_config(recovery, SQLITE_RECOVER_LOST_AND_FOUND, (void *)"lost_and_found");
  int pages_in_use = 0;
  sqlite3_recover_config(recovery, SQLITE_RECOVER_FREELIST_CORRUPT, &pages_in_use);
  sqlite3_recover_run(recovery);
  if (sqlite3_recover_errcode(recovery)) fprintf(stderr, "%s\n", sqlite3_recover_errmsg(recovery));
  return sqlite3_recover_finish(recovery);
}
