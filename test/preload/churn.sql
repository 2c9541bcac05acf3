-- SPDX-License-Identifier: Apache-2.0
--
-- Work for sqlite3 whose output is the same every time; run by sqlite3.sh, and by the lab with more rows.
PRAGMA journal_mode = MEMORY;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, weight REAL, note BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < coalesce($rows, 60000))
INSERT INTO item SELECT i, 'item-' || (i * 7919 % 60013), (i * 31 % 1000) / 7.0, zeroblob(i % 300) FROM n;
CREATE INDEX by_name ON item(name);
CREATE INDEX by_weight ON item(weight, name);
SELECT count(*), round(sum(weight), 3), max(length(note)) FROM item;
SELECT name, round(weight, 4) FROM item ORDER BY weight DESC, name LIMIT 20;
SELECT a.id, b.id FROM item a JOIN item b ON b.name = 'item-' || a.id WHERE a.id % 997 = 0 ORDER BY 1;
SELECT substr(name, 6, 2) AS head, count(*), group_concat(id % 10, '') FROM item WHERE id < 5000 GROUP BY head;
UPDATE item SET name = name || '-' || hex(substr(note, 1, 8)) WHERE id % 3 = 0;
DELETE FROM item WHERE id % 5 = 0;
VACUUM;
WITH RECURSIVE fib(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM fib WHERE b < 1000000000) SELECT a FROM fib;
SELECT count(DISTINCT name), sum(length(name)) FROM item;
PRAGMA integrity_check;
