#!/usr/bin/env python3
"""Keeps a table (key -> newest document) right, also while the collection is back-filled anew.

    python3 examples/table_consumer.py 127.0.0.1:9092 orders id

Needs confluent-kafka, and a task whose catalog says `sluice: {truncation_signal: headers}` (docs/truncation.md).

The rule is one line: when a header `sluice.backfill-begin` carries a later clock than all before, every row whose document is
older than that clock is gone. A row's clock is in its document, `/_meta/uuid`; the clock in the header is of the same kind. So it does
not matter in which partition the header comes first, whether it comes twice, or what is still on its way in the others.
"""
import json
import sys

BEGIN, COMPLETE = 'sluice.backfill-begin', 'sluice.backfill-complete'


def clock_of(document):
    """The 64-bit clock of a document's UUID: 60 bits of 100 ns since 1582-10-15, and a counter of 4 bits."""
    b = bytes.fromhex(document['_meta']['uuid'].replace('-', ''))
    ticks = (int.from_bytes(b[6:8], 'big') & 0xfff) << 48 | int.from_bytes(b[4:6], 'big') << 32 | int.from_bytes(b[0:4], 'big')
    return ticks << 4 | b[8] >> 2 & 15


class Table:
    def __init__(self, key):
        self.key, self.rows = key, {}    # rows: key -> (clock, document)
        self.begin = self.complete = 0

    def apply(self, value, headers):
        """One record. Returns the keys that a new backfill removed."""
        gone = []
        for name, clock in ((n, int(v, 16)) for n, v in headers or [] if n in (BEGIN, COMPLETE)):
            if name == BEGIN and clock > self.begin:
                self.begin = clock
                gone = [k for k, (c, _) in self.rows.items() if c < clock]
                for k in gone:
                    del self.rows[k]
            elif name == COMPLETE:
                self.complete = max(self.complete, clock)
        document = json.loads(value)
        clock = clock_of(document)
        if clock >= self.begin:    # an older one was on its way in another partition
            self.rows[document[self.key]] = (clock, document)
        return gone

    @property
    def is_complete(self):
        """The newest backfill has ended: the table holds all of it, as far as it was read."""
        return self.complete > self.begin


def main(bootstrap, topic, key):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({'bootstrap.servers': bootstrap, 'group.id': 'table', 'enable.auto.commit': False})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    table = Table(key)
    try:
        while True:
            message = consumer.poll(1.0)
            if message is None or message.error():
                continue
            gone = table.apply(message.value(), message.headers())
            if gone:
                print('a backfill began: %d rows are gone' % len(gone))
            print('%d rows%s' % (len(table.rows), ', complete' if table.is_complete else ''), flush=True)
    except KeyboardInterrupt:
        consumer.close()


if __name__ == '__main__':
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
