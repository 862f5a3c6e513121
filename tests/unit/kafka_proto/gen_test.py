#!/usr/bin/env python3
"""The generator refuses whatever would make a wrong table, and says where; its output is stable and current."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "kafka_proto" / "gen"))
import kmsg  # noqa: E402
import kpgen  # noqa: E402

GOOD = """# A note.
api 7 Thing  versions 2-9  flexible 5

request
  name        string
  ids         []int32?  3+
  parts       []
    index     int32     = -1     # the partition
    note      string?   6+  tag 0  ignorable  = null
  cursor      {}?       5+  = null
    at        int64

response
"""


def parse(*texts):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, text in enumerate(texts):
            paths.append(os.path.join(folder, f"{i}.kmsg"))
            pathlib.Path(paths[-1]).write_text(text, encoding="utf-8")
        return kmsg.load(paths)


class Parser(unittest.TestCase):
    def test_a_good_file_yields_its_rows(self):
        (api,) = parse(GOOD)
        self.assertEqual((api.key, api.name, api.lo, api.hi, api.flexible), (7, "Thing", 2, 9, 5))
        self.assertEqual(api.about, "A note.")
        name, ids, parts, cursor = api.request
        self.assertEqual((name.type, name.lo, name.hi, name.null_lo), ("string", 2, 9, None))
        self.assertEqual((ids.array, ids.lo, ids.null_lo), (True, 3, 3))
        index, note = parts.fields
        self.assertEqual((index.default, note.tag, note.ignorable, note.default), (-1, 0, True, "null"))
        self.assertEqual(parts.path, "kp_thing_req_parts")
        self.assertEqual(cursor.fields[0].lo, 5)  # as the enclosing struct

    def test_names_follow_the_rule(self):
        for theirs, ours in (("NodeId", "node_id"), ("ISRNodes", "isr_nodes"), ("IsrNodes", "isr_nodes"),
                             ("TimeoutMs", "timeout_ms"), ("Name", "name"), ("ZkMigrationReady", "zk_migration_ready")):
            self.assertEqual(kmsg.snake(theirs), ours)


class Refusals(unittest.TestCase):
    def refused(self, text, why, line=None):
        with self.assertRaises(kmsg.Refused) as e:
            parse(text)
        self.assertRegex(str(e.exception), why)
        if line is not None:
            self.assertRegex(str(e.exception), rf"\.kmsg:{line}: ")

    def field(self, row, why, line=12):
        """One more field at the end of the request, from line 12 on."""
        self.refused(GOOD.replace("\nresponse", f"  {row}\n\nresponse"), why, line)

    def test_a_tag_before_the_flexible_version(self):
        self.field("x  int32  4+  tag 3", "tag before the flexible version")

    def test_overlapping_ranges_of_one_name(self):
        self.field("name  string  3+", "'name' is taken")

    def test_a_default_that_does_not_fit(self):
        self.field("x  int8  = 128", "does not fit int8")
        self.field("x  int32  = 0x80000000", "does not fit int32")
        self.field("x  int32  = many", "no number")
        self.field("x  string  = 1", "does not fit the type")
        self.field("x  []int32  = 1", "does not fit the type")
        self.field("x  bool  = 2", "does not fit bool")
        self.field("x  string  = null", "not nullable")
        self.field("x  string?3+  = null", "not nullable in all its versions")

    def test_an_element_without_bytes(self):
        self.field("x  []\n    y  int32  3+", "no bytes in version 2")
        self.field("x  []\n    y  int32  5+  tag 0", "no bytes in version 2")

    def test_a_range_outside_of_the_api_or_the_enclosing_struct(self):
        self.field("x  int32  1+", "outside of versions 2-9")
        self.field("x  int32  3-10", "outside of versions 2-9")
        self.field("x  int32  5-4", "outside of versions")
        self.refused(GOOD.replace("    at        int64", "    at  int64  4+"), "outside of versions 5-9", 11)

    def test_bad_nullability(self):
        self.field("x  int32?", "cannot be null")
        self.field("x  string?4+  5+", "nullable outside")
        self.field("x  {}?\n    y int32", "nullable struct")
        self.field("x  {}?  5+  tag 3 = null\n    y int32", "nullable struct")

    def test_unknown_types_and_words(self):
        self.field("x  int33", "unknown type")
        self.field("x  []records", "unknown type")
        self.field("x  int32  sometimes", "cannot read field")
        self.field("X  int32", "cannot read field")
        self.field("int  int32", "word of C")
        self.field("ids_n  int32", "count of 'ids'")

    def test_tags_that_do_not_rise(self):
        self.refused(GOOD.replace("  cursor ", "  a int8 5+ tag 1\n  b int8 5+ tag 1\n  cursor "), "tags must rise", 11)

    def test_bad_shape(self):
        self.field("   x  int32", "odd indentation")
        self.field("\tx  int32", "tab")
        self.field("  x  int32\n      y int32", "indented below nothing", 13)
        self.field("x  {}", "has no fields")
        self.refused(GOOD.replace("response\n", ""), "needs an api line, a request and a response")
        self.refused(GOOD.replace("response\n", "request\n"), "expected", 13)
        self.refused(GOOD.replace("versions 2-9", "versions 9-2"), "bad versions", 2)
        self.refused(GOOD.replace("api 7", "apo 7"), "api line comes first", 2)
        self.refused("", "needs an api line")

    def test_a_key_or_struct_that_is_taken(self):
        with self.assertRaisesRegex(kmsg.Refused, "key 7 is taken"):
            parse(GOOD, GOOD.replace("Thing", "Other"))
        with self.assertRaisesRegex(kmsg.Refused, "is taken"):
            parse(GOOD, GOOD.replace("api 7", "api 8"))

    def test_the_program_exits_with_1_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / "bad.kmsg"
            bad.write_text("nonsense\n", encoding="ascii")
            err = io.StringIO()
            with contextlib.redirect_stderr(err):
                self.assertEqual(kpgen.main(["--out", folder + "/gen", str(bad)]), 1)
            self.assertIn("bad.kmsg:1:", err.getvalue())
            self.assertFalse(os.path.exists(folder + "/gen"))


class Output(unittest.TestCase):
    files = [str(p) for p in sorted((ROOT / "kafka_proto" / "messages").glob("*.kmsg"))]

    def test_the_output_is_the_same_twice_and_in_any_order(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, files in (("a", self.files), ("b", self.files[::-1])):
                self.assertEqual(kpgen.main(["--out", f"{folder}/{name}", *files]), 0)
            for name in ("kp_messages.h", "kp_messages.c"):
                a = pathlib.Path(folder, "a", name).read_bytes()
                self.assertEqual(a, pathlib.Path(folder, "b", name).read_bytes())
                self.assertGreater(len(a), 10000)

    def test_an_unchanged_output_keeps_its_time_stamp(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(kpgen.main(["--out", folder, *self.files]), 0)
            path = os.path.join(folder, "kp_messages.h")
            os.utime(path, (1, 1))
            self.assertEqual(kpgen.main(["--out", folder, *self.files]), 0)
            self.assertEqual(os.stat(path).st_mtime, 1)

    def test_the_list_of_apis_in_docs_is_current(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "api.md")
            self.assertEqual(kpgen.main(["--docs", str(path), *self.files]), 0)
            self.assertEqual(path.read_text("ascii"), (ROOT / "docs" / "api-support.md").read_text("ascii"),
                             "run kafka_proto/gen/kpgen.py --docs docs/api-support.md kafka_proto/messages/*.kmsg")


if __name__ == "__main__":
    unittest.main()
