#!/usr/bin/env python3
"""Writes examples/orders.ndjson: 200 orders of a small shop in the sequence of their events, the same on every run.
An order appears several times (placed, paid, shipped, perhaps returned), so that a key has a history."""
import json
import random
from datetime import datetime, timedelta

R = random.Random(7)
GOODS = [('TEA-ASSAM-250', 'Assam, 250 g', 890), ('TEA-SENCHA-100', 'Sencha, 100 g', 1150), ('POT-CAST-1L', 'Cast iron pot, 1 l', 5900),
         ('CUP-STONE-2', 'Stoneware cups, pair', 2450), ('FILTER-PAPER-100', 'Paper filters, 100', 320), ('HONEY-LIME-500', 'Lime tree honey, 500 g', 780),
         ('MUG-ENAMEL', 'Enamel mug', 1290), ('TEA-ROOIBOS-500', 'Rooibos, 500 g', 990)]
PEOPLE = [('Amira Haddad', 'Lyon', 'FR'), ('Jonas Lindqvist', 'Göteborg', 'SE'), ('Mai Nguyễn', 'Hà Nội', 'VN'), ('Zoë Brandt', 'Köln', 'DE'),
          ('Ren Satō', '京都', 'JP'), ('Óscar Peña', 'Sevilla', 'ES'), ('Ava O’Neill', 'Cork', 'IE'), ('Tomáš Dvořák', 'Brno', 'CZ')]
CURRENCY = {'SE': 'SEK', 'VN': 'VND', 'JP': 'JPY', 'CZ': 'CZK'}
t = datetime(2026, 3, 2, 8, 0)
open_orders, out, number = {}, [], 10200
while len(out) < 200:
    t += timedelta(seconds=R.randint(20, 900))
    if open_orders and R.random() < 0.6:
        no = R.choice(sorted(open_orders))
        o = open_orders[no]
        o['status'] = {'placed': 'paid', 'paid': 'shipped', 'shipped': 'delivered', 'delivered': 'returned'}[o['status']]
        if o['status'] == 'shipped':
            o['parcel'] = {'carrier': R.choice(['northline', 'postal']), 'tracking': '%012d' % R.randrange(10**12)}
        if o['status'] in ('delivered', 'returned') and (o['status'] == 'returned' or R.random() < 0.85):
            del open_orders[no]
    else:
        number += 1
        name, city, country = R.choice(PEOPLE)
        lines = [{'sku': s, 'name': n, 'quantity': R.randint(1, 3), 'unit_price_cents': p} for s, n, p in R.sample(GOODS, R.randint(1, 4))]
        o = {'order': 'A-%d' % number, 'status': 'placed', 'customer': {'name': name, 'city': city, 'country': country}, 'lines': lines,
             'total_cents': sum(x['quantity'] * x['unit_price_cents'] for x in lines), 'currency': CURRENCY.get(country, 'EUR'), 'gift': R.random() < 0.1}
        if R.random() < 0.15:
            o['note'] = R.choice(['Please ring twice.', 'Leave it at the neighbour\'s.', 'Birthday: not before Friday!', 'Fragile "glass" inside'])
        open_orders[o['order']] = o
    out.append(dict(json.loads(json.dumps(o)), updated_at=t.strftime('%Y-%m-%dT%H:%M:%SZ')))
for o in out:
    print(json.dumps(o, ensure_ascii=False, separators=(',', ':')))
