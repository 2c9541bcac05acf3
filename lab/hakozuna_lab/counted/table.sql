-- SPDX-License-Identifier: Apache-2.0
-- A table, two indexes, a join with itself, groups, and rows that are deleted.
CREATE TABLE rows (id INTEGER PRIMARY KEY, key TEXT, value TEXT);
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 12000)
INSERT INTO rows SELECT n, hex(n * 7919 % 10007), printf('%d-%s', n, substr('abcdefghijklmnopqrstuvwxyz', 1, n % 26)) FROM numbers;
CREATE INDEX by_key ON rows (key);
CREATE INDEX by_value ON rows (value, key);
SELECT count(*) FROM rows a JOIN rows b ON a.key = b.key AND a.id < b.id;
SELECT max(bytes) FROM (SELECT length(group_concat(value, ',')) AS bytes FROM rows GROUP BY id % 97);
DELETE FROM rows WHERE id % 3 = 0;
SELECT count(DISTINCT value) FROM rows;
