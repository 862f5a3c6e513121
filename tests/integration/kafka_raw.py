"""A Kafka client of bytes: encodes any version of the read requests, decodes every byte of the answers, reads record
batches. Written from the protocol's own definition, not from the server's tables, so that an error in those shows.
Standard library only (crc32c where it is installed). Nothing is retried: what a test does not ask for does not happen."""
import socket
import struct
import uuid as uuidlib

try:
    from crc32c import crc32c as _fast_crc    # a hundred times as fast as the loop below
except ImportError:
    _fast_crc = None

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_FETCH = 0, 1, 2, 3, 9
FIND_COORDINATOR, JOIN_GROUP, API_VERSIONS, CREATE_TOPICS, EPOCH_END = 10, 11, 18, 19, 23
DESCRIBE_CONFIGS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 32, 60, 75
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36

EARLIEST, LATEST, MAX_TIME, EARLIEST_LOCAL, LATEST_TIERED = -2, -1, -3, -4, -5
ZERO_ID = uuidlib.UUID(int=0)


class ProtocolError(Exception):
    """The server's bytes are not what the protocol says."""


class Closed(Exception):
    """The server closed the connection."""


# --- primitive types ----------------------------------------------------------------------------------------------

class Writer:
    def __init__(self):
        self.b = bytearray()

    def int(self, fmt, v):
        self.b += struct.pack('>' + fmt, v)

    def varint(self, v):
        """Unsigned."""
        while v > 127:
            self.b.append(v & 127 | 128)
            v >>= 7
        self.b.append(v)


class Reader:
    def __init__(self, b, at=0):
        self.b, self.at = b, at

    def take(self, n):
        if n < 0 or n > len(self.b) - self.at:
            raise ProtocolError('a field of %d bytes at %d runs over the end at %d' % (n, self.at, len(self.b)))
        self.at += n
        return self.b[self.at - n:self.at]

    def int(self, fmt):
        return struct.unpack('>' + fmt, self.take(struct.calcsize('>' + fmt)))[0]

    def varint(self):
        v = shift = 0
        while True:
            c = self.take(1)[0]
            v |= (c & 127) << shift
            if not c & 128:
                return v
            shift += 7
            if shift > 63:
                raise ProtocolError('varint too long')

    def zigzag(self):
        v = self.varint()
        return v >> 1 ^ -(v & 1)


INTS = {'int8': 'b', 'int16': 'h', 'int32': 'i', 'int64': 'q', 'uint16': 'H'}


def put(w, kind, v, flex):
    nullable = kind.endswith('?')
    base = kind.rstrip('?')
    if base in INTS:
        w.int(INTS[base], v)
    elif base == 'bool':
        w.int('b', 1 if v else 0)
    elif base == 'uuid':
        w.b += v.bytes
    elif base in ('string', 'bytes', 'records'):
        if v is None and not nullable:
            raise ValueError('null in a field that cannot be')
        raw = v.encode() if isinstance(v, str) else v
        if flex:
            w.varint(0 if raw is None else len(raw) + 1)
        else:
            w.int('h' if base == 'string' else 'i', -1 if raw is None else len(raw))
        w.b += raw or b''
    else:
        raise ValueError(kind)


def get(r, kind, flex):
    nullable = kind.endswith('?')
    base = kind.rstrip('?')
    if base in INTS:
        return r.int(INTS[base])
    if base == 'bool':
        v = r.int('b')
        if v not in (0, 1):
            raise ProtocolError('boolean %d' % v)
        return bool(v)
    if base == 'uuid':
        return uuidlib.UUID(bytes=bytes(r.take(16)))
    if base in ('string', 'bytes', 'records'):
        n = r.varint() - 1 if flex else r.int('h' if base == 'string' else 'i')
        if n < 0:
            if n != -1 or not nullable:
                raise ProtocolError('length %d of a %s' % (n, kind))
            return None
        raw = bytes(r.take(n))
        return raw.decode() if base == 'string' else raw
    raise ValueError(kind)


# --- messages -----------------------------------------------------------------------------------------------------
# A field: (name, type, first version[, last version[, default]]). A type is a primitive, a list of fields (a struct),
# or ('[]', type) / ('[]?', type) for arrays. Tagged fields: TAG + number before the type, in Tagged().

class F:
    def __init__(self, name, kind, lo=0, hi=99, default=None, tag=None, null_from=0):
        self.name, self.kind, self.lo, self.hi, self.default, self.tag = name, kind, lo, hi, default, tag
        self.null_from = null_from

    def default_value(self):
        if self.default is not None:
            return self.default
        if isinstance(self.kind, tuple):
            return []
        if isinstance(self.kind, list):
            return {}
        if self.kind.endswith('?'):
            return None
        return {'string': '', 'bool': False, 'uuid': ZERO_ID}.get(self.kind, 0)


def A(kind):
    return ('[]', kind)


def AN(kind):
    return ('[]?', kind)


def put_value(w, kind, v, version, flex):
    if isinstance(kind, list):
        put_struct(w, kind, v, version, flex)
    elif isinstance(kind, tuple):
        if v is None:
            w.varint(0) if flex else w.int('i', -1)
            return
        w.varint(len(v) + 1) if flex else w.int('i', len(v))
        for x in v:
            put_value(w, kind[1], x, version, flex)
    else:
        put(w, kind, v, flex)


def put_struct(w, fields, values, version, flex):
    unknown = set(values) - {f.name for f in fields}
    if unknown:
        raise ValueError('no such fields: %s' % unknown)
    tagged = []
    for f in fields:
        if not f.lo <= version <= f.hi:
            continue
        v = values.get(f.name, f.default_value())
        if f.tag is not None:
            if f.name in values:
                tagged.append((f, v))
            continue
        put_value(w, f.kind, v, version, flex)
    if flex:
        w.varint(len(tagged))
        for f, v in sorted(tagged, key=lambda x: x[0].tag):
            inner = Writer()
            put_value(inner, f.kind, v, version, flex)
            w.varint(f.tag)
            w.varint(len(inner.b))
            w.b += inner.b


def get_value(r, kind, version, flex):
    if isinstance(kind, list):
        return get_struct(r, kind, version, flex)
    if isinstance(kind, tuple):
        n = r.varint() - 1 if flex else r.int('i')
        if n < 0:
            if n != -1 or kind[0] != '[]?':
                raise ProtocolError('array of %d' % n)
            return None
        return [get_value(r, kind[1], version, flex) for _ in range(n)]
    return get(r, kind, flex)


def get_struct(r, fields, version, flex):
    out = {}
    for f in fields:
        if f.tag is None and f.lo <= version <= f.hi:
            try:
                out[f.name] = get_value(r, f.kind, version, flex)
            except ProtocolError as e:
                raise ProtocolError('%s: %s' % (f.name, e)) from None
    if flex:
        last = -1
        for _ in range(r.varint()):
            tag, size = r.varint(), r.varint()
            if tag <= last:
                raise ProtocolError('tag %d after %d' % (tag, last))
            last = tag
            body = Reader(r.take(size))
            for f in fields:
                if f.tag == tag and f.lo <= version <= f.hi:
                    out[f.name] = get_value(body, f.kind, version, flex)
                    if body.at != size:
                        raise ProtocolError('%d bytes left in tag %d' % (size - body.at, tag))
    return out


class Api:
    def __init__(self, key, lo, hi, flex, request, response):
        self.key, self.lo, self.hi, self.flex, self.request, self.response = key, lo, hi, flex, request, response


APIS = {
    API_VERSIONS: Api(API_VERSIONS, 0, 4, 3,
        [F('client_software_name', 'string', 3), F('client_software_version', 'string', 3)],
        [F('error_code', 'int16'),
         F('api_keys', A([F('api_key', 'int16'), F('min_version', 'int16'), F('max_version', 'int16')])),
         F('throttle_time_ms', 'int32', 1)]),
    METADATA: Api(METADATA, 0, 13, 9,
        [F('topics', AN([F('topic_id', 'uuid', 10), F('name', 'string?')])),
         F('allow_auto_topic_creation', 'bool', 4), F('include_cluster_authorized_operations', 'bool', 8, 10),
         F('include_topic_authorized_operations', 'bool', 8)],
        [F('throttle_time_ms', 'int32', 3),
         F('brokers', A([F('node_id', 'int32'), F('host', 'string'), F('port', 'int32'), F('rack', 'string?', 1)])),
         F('cluster_id', 'string?', 2), F('controller_id', 'int32', 1),
         F('topics', A([F('error_code', 'int16'), F('name', 'string?'), F('topic_id', 'uuid', 10),
                        F('is_internal', 'bool', 1),
                        F('partitions', A([F('error_code', 'int16'), F('partition_index', 'int32'),
                                           F('leader_id', 'int32'), F('leader_epoch', 'int32', 7),
                                           F('replica_nodes', A('int32')), F('isr_nodes', A('int32')),
                                           F('offline_replicas', A('int32'), 5)])),
                        F('topic_authorized_operations', 'int32', 8)])),
         F('cluster_authorized_operations', 'int32', 8, 10), F('error_code', 'int16', 13)]),
    LIST_OFFSETS: Api(LIST_OFFSETS, 1, 11, 6,
        [F('replica_id', 'int32', default=-1), F('isolation_level', 'int8', 2),
         F('topics', A([F('name', 'string'),
                        F('partitions', A([F('partition_index', 'int32'),
                                           F('current_leader_epoch', 'int32', 4, default=-1),
                                           F('timestamp', 'int64')]))])),
         F('timeout_ms', 'int32', 10)],
        [F('throttle_time_ms', 'int32', 2),
         F('topics', A([F('name', 'string'),
                        F('partitions', A([F('partition_index', 'int32'), F('error_code', 'int16'),
                                           F('timestamp', 'int64', 1), F('offset', 'int64', 1),
                                           F('leader_epoch', 'int32', 4)]))]))]),
    FETCH: Api(FETCH, 4, 18, 12,
        [F('cluster_id', 'string?', 12, tag=0), F('replica_id', 'int32', 0, 14, default=-1),
         F('max_wait_ms', 'int32'), F('min_bytes', 'int32'), F('max_bytes', 'int32', 3),
         F('isolation_level', 'int8', 4), F('session_id', 'int32', 7), F('session_epoch', 'int32', 7, default=-1),
         F('topics', A([F('topic', 'string', 0, 12), F('topic_id', 'uuid', 13),
                        F('partitions', A([F('partition', 'int32'), F('current_leader_epoch', 'int32', 9, default=-1),
                                           F('fetch_offset', 'int64'),
                                           F('last_fetched_epoch', 'int32', 12, default=-1),
                                           F('log_start_offset', 'int64', 5, default=-1),
                                           F('partition_max_bytes', 'int32'),
                                           F('replica_directory_id', 'uuid', 17, tag=0),
                                           F('high_watermark', 'int64', 18, tag=1)]))])),
         F('forgotten_topics_data', A([F('topic', 'string', 7, 12), F('topic_id', 'uuid', 13),
                                       F('partitions', A('int32'))]), 7),
         F('rack_id', 'string', 11)],
        [F('throttle_time_ms', 'int32', 1), F('error_code', 'int16', 7), F('session_id', 'int32', 7),
         F('responses', A([F('topic', 'string', 0, 12), F('topic_id', 'uuid', 13),
                           F('partitions', A([F('partition_index', 'int32'), F('error_code', 'int16'),
                                              F('high_watermark', 'int64'), F('last_stable_offset', 'int64', 4),
                                              F('log_start_offset', 'int64', 5),
                                              F('diverging_epoch', [F('epoch', 'int32'), F('end_offset', 'int64')], 12, tag=0),
                                              F('current_leader', [F('leader_id', 'int32'), F('leader_epoch', 'int32')], 12, tag=1),
                                              F('snapshot_id', [F('end_offset', 'int64'), F('epoch', 'int32')], 12, tag=2),
                                              F('aborted_transactions', AN([F('producer_id', 'int64'), F('first_offset', 'int64')]), 4),
                                              F('preferred_read_replica', 'int32', 11),
                                              F('records', 'records?')]))])),
         F('node_endpoints', A([F('node_id', 'int32'), F('host', 'string'), F('port', 'int32'), F('rack', 'string?')]), 16, tag=0)]),
    FIND_COORDINATOR: Api(FIND_COORDINATOR, 0, 6, 3,
        [F('key', 'string', 0, 3), F('key_type', 'int8', 1), F('coordinator_keys', A('string'), 4)],
        [F('throttle_time_ms', 'int32', 1), F('error_code', 'int16', 0, 3), F('error_message', 'string?', 1, 3),
         F('node_id', 'int32', 0, 3), F('host', 'string', 0, 3), F('port', 'int32', 0, 3),
         F('coordinators', A([F('key', 'string'), F('node_id', 'int32'), F('host', 'string'), F('port', 'int32'),
                              F('error_code', 'int16'), F('error_message', 'string?')]), 4)]),
    EPOCH_END: Api(EPOCH_END, 2, 4, 4,
        [F('replica_id', 'int32', 3, default=-1),
         F('topics', A([F('topic', 'string'), F('partitions', A([F('partition', 'int32'),
                                                                 F('current_leader_epoch', 'int32', 2, default=-1),
                                                                 F('leader_epoch', 'int32')]))]))],
        [F('throttle_time_ms', 'int32', 2),
         F('topics', A([F('topic', 'string'), F('partitions', A([F('error_code', 'int16'), F('partition', 'int32'),
                                                                 F('leader_epoch', 'int32', 1), F('end_offset', 'int64')]))]))]),
    DESCRIBE_CONFIGS: Api(DESCRIBE_CONFIGS, 1, 4, 4,
        [F('resources', A([F('resource_type', 'int8'), F('resource_name', 'string'), F('configuration_keys', AN('string'))])),
         F('include_synonyms', 'bool', 1), F('include_documentation', 'bool', 3)],
        [F('throttle_time_ms', 'int32'),
         F('results', A([F('error_code', 'int16'), F('error_message', 'string?'), F('resource_type', 'int8'),
                         F('resource_name', 'string'),
                         F('configs', A([F('name', 'string'), F('value', 'string?'), F('read_only', 'bool'),
                                         F('config_source', 'int8', 1), F('is_sensitive', 'bool'),
                                         F('synonyms', A([F('name', 'string'), F('value', 'string?'), F('source', 'int8')]), 1),
                                         F('config_type', 'int8', 3), F('documentation', 'string?', 3)]))]))]),
    SASL_HANDSHAKE: Api(SASL_HANDSHAKE, 0, 1, 99,
        [F('mechanism', 'string')],
        [F('error_code', 'int16'), F('mechanisms', A('string'))]),
    SASL_AUTHENTICATE: Api(SASL_AUTHENTICATE, 0, 2, 2,
        [F('auth_bytes', 'bytes')],
        [F('error_code', 'int16'), F('error_message', 'string?'), F('auth_bytes', 'bytes'),
         F('session_lifetime_ms', 'int64', 1)]),
    PRODUCE: Api(PRODUCE, 3, 9, 9,
        [F('transactional_id', 'string?', 3), F('acks', 'int16'), F('timeout_ms', 'int32'),
         F('topics', A([F('name', 'string'), F('partitions', A([F('index', 'int32'), F('records', 'records?')]))]))],
        [F('topics', A([F('name', 'string'),
                        F('partitions', A([F('index', 'int32'), F('error_code', 'int16'), F('base_offset', 'int64'),
                                           F('log_append_time_ms', 'int64', 2), F('log_start_offset', 'int64', 5),
                                           F('record_errors', A([F('batch_index', 'int32'), F('message', 'string?')]), 8),
                                           F('error_message', 'string?', 8)]))])),
         F('throttle_time_ms', 'int32', 1)]),
}


def request_header(key, version, correlation, client_id='raw', flex=False):
    w = Writer()
    w.int('h', key)
    w.int('h', version)
    w.int('i', correlation)
    put(w, 'string?', client_id, False)
    if flex:
        w.varint(0)
    return bytes(w.b)


def encode_request(key, version, body, correlation=1, client_id='raw'):
    """The frame without its length."""
    api = APIS[key]
    flex = version >= api.flex
    w = Writer()
    put_struct(w, api.request, body, version, flex)
    return request_header(key, version, correlation, client_id, flex) + bytes(w.b)


def decode_response(key, version, frame):
    """frame: from the correlation id on. Every byte must be used. Returns (correlation, body)."""
    api = APIS[key]
    flex = version >= api.flex
    r = Reader(frame)
    correlation = r.int('i')
    if flex and key != API_VERSIONS:    # the header of an ApiVersions answer never is flexible
        for _ in range(r.varint()):
            r.varint()
            r.take(r.varint())
    body = get_struct(r, api.response, version, flex)
    if r.at != len(frame):
        raise ProtocolError('%d bytes left behind the body' % (len(frame) - r.at))
    return correlation, body


def framed(payload):
    return struct.pack('>i', len(payload)) + payload


# --- connection ---------------------------------------------------------------------------------------------------

class Conn:
    def __init__(self, port, timeout=15, client_id='raw', rcvbuf=None):
        self.s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if rcvbuf:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.s.settimeout(timeout)
        self.s.connect(('127.0.0.1', port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self.correlation = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.s.close()

    def send(self, payload):
        self.s.sendall(framed(payload))

    def recv_exact(self, n):
        parts = []
        while n > 0:
            try:
                b = self.s.recv(min(n, 1 << 20))
            except ConnectionResetError:
                raise Closed() from None
            if not b:
                raise Closed()
            parts.append(b)
            n -= len(b)
        return b''.join(parts)

    def recv(self):
        n = struct.unpack('>i', self.recv_exact(4))[0]
        if n < 4 or n > 1 << 30:
            raise ProtocolError('frame of %d bytes' % n)
        return self.recv_exact(n)

    def closed(self, within=5):
        """True when the server closes in time; what it sends before is dropped."""
        self.s.settimeout(within)
        try:
            while self.s.recv(65536):
                pass
            return True
        except (ConnectionResetError, BrokenPipeError):
            return True
        except socket.timeout:
            return False

    def start(self, key, version, /, **body):
        self.correlation += 1
        self.send(encode_request(key, version, body, self.correlation, self.client_id))
        return self.correlation

    def finish(self, key, version, correlation):
        got, body = decode_response(key, version, self.recv())
        if got != correlation:
            raise ProtocolError('correlation id %d, asked %d' % (got, correlation))
        return body

    def call(self, key, version, /, **body):
        return self.finish(key, version, self.start(key, version, **body))

    # The usual requests, one topic.
    def api_versions(self, version=3):
        r = self.call(API_VERSIONS, version, **({'client_software_name': 'raw', 'client_software_version': '1'} if version >= 3 else {}))
        return {k['api_key']: (k['min_version'], k['max_version']) for k in r['api_keys']}

    def metadata(self, topic, version=9):
        r = self.call(METADATA, version, topics=[{'name': topic}])
        return r['topics'][0]

    def list_offset(self, topic, partition, timestamp, version=5, isolation=0):
        body = {'topics': [{'name': topic, 'partitions': [{'partition_index': partition, 'timestamp': timestamp}]}]}
        if version >= 2:
            body['isolation_level'] = isolation
        return self.call(LIST_OFFSETS, version, **body)['topics'][0]['partitions'][0]

    def fetch_start(self, topic, offsets, version=11, max_wait_ms=0, min_bytes=1, max_bytes=50 << 20,
                    partition_max_bytes=1 << 20, isolation=0, topic_id=None, session_id=0, session_epoch=-1,
                    forget=(), epoch=-1):
        """offsets: {partition: offset}."""
        parts = [{'partition': p, 'fetch_offset': o, 'partition_max_bytes': partition_max_bytes,
                  'current_leader_epoch': epoch} for p, o in offsets.items()]
        name = {'topic_id': topic_id} if version >= 13 else {'topic': topic}
        return self.start(FETCH, version, max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes,
                          isolation_level=isolation, session_id=session_id, session_epoch=session_epoch,
                          topics=[dict(name, partitions=parts)] if parts else [],
                          forgotten_topics_data=[dict(name, partitions=list(forget))] if forget else [])

    def fetch(self, topic, partition, offset, version=11, **kw):
        """One partition; returns its answer, with 'batches' decoded."""
        r = self.finish(FETCH, version, self.fetch_start(topic, {partition: offset}, version, **kw))
        if not r['responses']:
            return None
        p = r['responses'][0]['partitions'][0]
        p['batches'] = decode_batches(p['records'] or b'')
        return p

    def records_from(self, topic, partition, offset, version=11, **kw):
        """What a client sees of one fetch: records at or behind offset, no control records; and the answer."""
        p = self.fetch(topic, partition, offset, version, **kw)
        if p is None:
            return [], None
        return visible(p['batches'], offset), p


# --- record batches -----------------------------------------------------------------------------------------------

def _crc_table():
    t = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = c >> 1 ^ 0x82F63B78 if c & 1 else c >> 1
        t.append(c)
    return t


_CRC = _crc_table()


def crc32c(b):
    if _fast_crc:
        return _fast_crc(b)
    c = 0xFFFFFFFF
    for x in b:
        c = _CRC[(c ^ x) & 255] ^ c >> 8
    return c ^ 0xFFFFFFFF


class Record:
    __slots__ = ('offset', 'timestamp', 'key', 'value', 'headers')

    def __init__(self, offset, timestamp, key, value, headers=()):
        self.offset, self.timestamp, self.key, self.value, self.headers = offset, timestamp, key, value, headers

    def __repr__(self):
        return 'Record(%d, %d, %r, %.60r)' % (self.offset, self.timestamp, self.key, self.value)


class RecordBatch:
    def __init__(self, base, epoch, attributes, last_delta, records):
        self.base, self.epoch, self.attributes, self.last_delta, self.records = base, epoch, attributes, last_delta, records

    @property
    def control(self):
        return bool(self.attributes & 0x20)

    @property
    def codec(self):
        return self.attributes & 7

    @property
    def last(self):
        return self.base + self.last_delta


def decode_batches(b, check_crc=True, decompress=None):
    """All whole batches; a cut one at the end is dropped, as clients do. decompress(codec, bytes) for compressed ones."""
    out = []
    r = Reader(b)
    while len(b) - r.at >= 61:
        base, size = r.int('q'), r.int('i')
        if size > len(b) - r.at:
            break
        end = r.at + size
        epoch, magic, crc = r.int('i'), r.int('b'), r.int('I')
        if magic != 2:
            raise ProtocolError('record batch with magic %d' % magic)
        if check_crc and crc32c(b[r.at:end]) != crc:
            raise ProtocolError('checksum of the batch at offset %d' % base)
        attributes, last_delta, first_time, max_time = r.int('h'), r.int('i'), r.int('q'), r.int('q')
        r.take(8 + 2 + 4)
        count = r.int('i')
        body = bytes(r.take(end - r.at))
        if attributes & 7:
            if decompress is None:
                raise ProtocolError('compressed batch, codec %d' % (attributes & 7))
            body = decompress(attributes & 7, body)
        rr = Reader(body)
        records = []
        for _ in range(count):
            size = rr.zigzag()
            stop = rr.at + size
            rr.int('b')
            ts, off = first_time + rr.zigzag(), base + rr.zigzag()
            n = rr.zigzag()
            key = None if n < 0 else bytes(rr.take(n))
            n = rr.zigzag()
            value = None if n < 0 else bytes(rr.take(n))
            headers = []
            for _ in range(rr.zigzag()):
                k = bytes(rr.take(rr.zigzag()))
                n = rr.zigzag()
                headers.append((k, None if n < 0 else bytes(rr.take(n))))
            if rr.at != stop:
                raise ProtocolError('record at %d ends at %d, not %d' % (off, rr.at, stop))
            records.append(Record(off, ts, key, value, headers))
        if rr.at != len(body):
            raise ProtocolError('%d bytes behind the last record' % (len(body) - rr.at))
        if not records:
            raise ProtocolError('batch without records')
        if records[-1].offset != base + last_delta:
            raise ProtocolError('last offset delta %d does not name the last record' % last_delta)
        if max(x.timestamp for x in records) != max_time:
            raise ProtocolError('max timestamp of the batch at %d' % base)
        out.append(RecordBatch(base, epoch, attributes, last_delta, records))
    return out


def visible(batches, offset):
    return [x for b in batches if not b.control for x in b.records if x.offset >= offset]


def bare_offset_fetch(version=2):
    """A group request as bytes, for servers that do not know groups: OffsetFetch v2, group g, all topics."""
    return request_header(OFFSET_FETCH, version, 1) + struct.pack('>h', 1) + b'g' + struct.pack('>i', -1)
