<?php
// SPDX-License-Identifier: Apache-2.0
//
// Work for php and its modules whose output is the same every time; run by php.sh. Its argument is a scratch folder.
$folder = $argv[1];

function number(int $n): int {
  static $state = 12345;
  $state = ($state * 1103515245 + 12345) % 2147483648;
  return intdiv($state, 65536) % $n;
}

function arrays(): string {
  $live = [];
  for ($step = 0; $step < 60000; ++$step) {
    $key = number(900);
    switch (number(4)) {
      case 0: $live[$key] = str_repeat('x', number(3000)); break;
      case 1: $live[$key] = range(0, number(200)); break;
      case 2: $live[$key] = (object) ['step' => $step, 'list' => array_fill(0, number(50), $key)]; break;
      default: unset($live[$key]);
    }
  }
  ksort($live);
  return md5(serialize($live));
}

function pdo(string $folder): string {
  $told = '';
  foreach (['sqlite::memory:', "sqlite:$folder/pdo.db"] as $where) {
    $db = new PDO($where);
    $db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
    $db->exec('CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, weight REAL, note BLOB)');
    $db->sqliteCreateFunction('twice', fn($text) => $text . $text, 1);
    $db->beginTransaction();
    $insert = $db->prepare('INSERT INTO item(name, weight, note) VALUES(:name, :weight, :note)');
    for ($i = 0; $i < 10000; ++$i) {
      $note = str_repeat('n', $i % 300);
      $insert->execute(['name' => 'item-' . $i * 7919 % 10007, 'weight' => $i / 7, 'note' => $note]);
    }
    $db->commit();
    $db->exec('CREATE INDEX by_name ON item(name)');
    $rows = $db->query('SELECT twice(name) AS name, round(weight, 3) AS weight, length(note) AS note FROM item ' .
      'WHERE id % 3 = 0 ORDER BY name')->fetchAll(PDO::FETCH_ASSOC);
    $all = $db->query('SELECT * FROM item')->fetchAll(PDO::FETCH_OBJ);
    try {
      $db->query('SELECT nothing FROM nowhere');
    } catch (PDOException $error) {
      $told .= $error->getMessage() . "\n";
    }
    $told .= count($rows) . ' ' . count($all) . ' ' . md5(serialize([$rows, $all])) . "\n";
  }
  $plain = new SQLite3(':memory:');
  $plain->exec('CREATE TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) ' .
    'SELECT i, hex(i) AS h FROM n');
  return $told . $plain->querySingle("SELECT count(*) || ' ' || sum(length(h)) FROM n");
}

function mbstring(): string {
  $text = str_repeat('Größe, 漢字かな交じり文, Привет, ', 2000);
  $told = [mb_strlen($text), mb_substr_count($text, '漢字'), md5(mb_strtoupper($text)), mb_strwidth($text)];
  foreach (['UTF-16LE', 'SJIS', 'EUC-JP', 'UTF-32'] as $encoding) {
    $told[] = md5(mb_convert_encoding($text, $encoding, 'UTF-8'));
  }
  for ($i = 0; $i < 2000; ++$i) $told[] = mb_substr($text, $i * 3, 2);
  $told[] = count(mb_split(', ', $text));
  return md5(implode('|', $told));
}

function xml(string $folder): string {
  $document = new DOMDocument();
  $root = $document->appendChild($document->createElement('items'));
  for ($i = 0; $i < 5000; ++$i) {
    $item = $root->appendChild($document->createElement('item', "text $i"));
    $item->setAttribute('id', (string) $i);
    if ($i % 3 == 0) $item->appendChild($document->createElement('inner', str_repeat('t', $i % 100)));
  }
  $found = (new DOMXPath($document))->query('//item[@id mod 7 = 0]/inner');
  $document->save("$folder/items.xml");
  $reader = new XMLReader();
  $reader->open("$folder/items.xml");
  $nodes = 0;
  while ($reader->read()) ++$nodes;
  $simple = simplexml_load_file("$folder/items.xml");
  $writer = new XMLWriter();
  $writer->openMemory();
  foreach ($simple->item as $one) $writer->writeElement('copy', (string) $one);
  $parser = xml_parser_create();
  xml_parse_into_struct($parser, file_get_contents("$folder/items.xml"), $values);
  libxml_use_internal_errors(true);
  $broken = simplexml_load_string('<a><b></a>');
  return implode(' ', [$found->length, $nodes, count($simple->item), md5($writer->outputMemory()), count($values),
    $broken === false ? count(libxml_get_errors()) : 'accepted']);
}

function curl(string $folder): string {
  file_put_contents("$folder/page", str_repeat("a line of a page\n", 20000));
  $many = curl_multi_init();
  $handles = [];
  for ($i = 0; $i < 40; ++$i) {
    $handles[] = $handle = curl_init("file://$folder/page");
    curl_setopt_array($handle, [CURLOPT_RETURNTRANSFER => true, CURLOPT_RANGE => $i * 100 . '-']);
    curl_multi_add_handle($many, $handle);
  }
  do {
    curl_multi_exec($many, $running);
  } while ($running > 0);
  $sizes = array_map(fn($handle) => strlen(curl_multi_getcontent($handle)), $handles);
  return array_sum($sizes) . ' ' . curl_escape($handles[0], 'ä ß');
}

function intl(): string {
  $words = [];
  for ($i = 0; $i < 3000; ++$i) $words[] = ['ä', 'a', 'z', 'ö', 'Å', 'é'][number(6)] . number(500);
  $told = [];
  foreach (['de_DE', 'sv_SE', 'ja_JP', 'fr_FR'] as $locale) {
    $sorted = $words;
    (new Collator($locale))->sort($sorted);
    $told[] = md5(implode(' ', $sorted));
    $told[] = (new NumberFormatter($locale, NumberFormatter::SPELLOUT))->format(123456);
    $told[] = MessageFormatter::formatMessage($locale, '{0,number} {1,plural,one{# one} other{# others}}', [1234.5, 3]);
    $told[] = (new IntlDateFormatter($locale, IntlDateFormatter::FULL, IntlDateFormatter::FULL, 'UTC'))->format(1e9);
  }
  $told[] = Normalizer::normalize("a\u{308}o\u{308}") . idn_to_ascii('münchen.example');
  $told[] = Transliterator::create('Any-Latin; Latin-ASCII')->transliterate('漢字 Привет Größe');
  foreach (IntlBreakIterator::createWordInstance('en') as $part) $told[] = $part;
  return implode("\n", $told);
}

echo arrays(), "\n", pdo($folder), "\n", mbstring(), "\n", xml($folder), "\n", curl($folder), "\n", intl(), "\n";
gc_collect_cycles();
