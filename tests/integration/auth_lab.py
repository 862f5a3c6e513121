"""Logins as a client does them, byte by byte: PLAIN, SCRAM, OAUTHBEARER over SaslHandshake and SaslAuthenticate or over
bare tokens; catalogs with tokens; JSON Web Tokens; certificates made by openssl."""
import base64
import hashlib
import hmac
import json
import os
import struct
import subprocess
import time

from kafka_raw import SASL_AUTHENTICATE, SASL_HANDSHAKE

REFUSED = 'Authentication failed: invalid user name or token'
SCRAM_HASH = {'SCRAM-SHA-256': 'sha256', 'SCRAM-SHA-512': 'sha512'}


def write_catalog(path, tasks, collections=None):
    """tasks: {task: (token or [tokens], {topic: collection})}. JSON is YAML."""
    names = set(collections or ()) | {c for _, (_, b) in tasks.items() for c in b.values()}
    doc = {'collections': {c: {'schema': {'type': 'object', 'properties': {'id': {'type': 'integer'}}, 'required': ['id']},
                               'key': ['/id']} for c in sorted(names)},
           'materializations': {
               t: {'endpoint': {'dekaf': {'variant': 'test', 'config': {'token': token, 'sluice': {'value_format': 'json'}}}},
                   'bindings': [{'source': c, 'resource': {'topic_name': n}} for n, c in b.items()]}
               for t, (token, b) in tasks.items()}}
    tmp = str(path) + '.tmp'
    with open(tmp, 'w') as f:
        json.dump(doc, f)
    os.rename(tmp, path)
    return path


class Refused(Exception):
    def __init__(self, error, text=None, mechanisms=None):
        super().__init__('%d %s' % (error, text))
        self.error, self.text, self.mechanisms = error, text, mechanisms


def handshake(conn, mechanism, version=1):
    r = conn.call(SASL_HANDSHAKE, version, mechanism=mechanism)
    if r['error_code']:
        raise Refused(r['error_code'], None, r['mechanisms'])
    return r['mechanisms']


def token(conn, data, version=2):
    """One message of SaslAuthenticate; (answer, session lifetime). version None: a bare token."""
    if version is None:
        conn.send(data)
        n = struct.unpack('>i', conn.recv_exact(4))[0]
        return conn.recv_exact(n), 0
    r = conn.call(SASL_AUTHENTICATE, version, auth_bytes=data)
    if r['error_code']:
        raise Refused(r['error_code'], r['error_message'])
    assert r['error_message'] is None
    return r['auth_bytes'], r.get('session_lifetime_ms', 0)


def plain(conn, user, password, version=2, authzid=''):
    return token(conn, b'\0'.join(x.encode() for x in (authzid, user, password)), version)[1]


def scram(conn, mechanism, user, password, version=2):
    """Checks the server's signature too. Returns the session lifetime."""
    h = SCRAM_HASH[mechanism]
    nonce = base64.b64encode(os.urandom(15)).decode()
    bare = 'n=%s,r=%s' % (user.replace('=', '=3D').replace(',', '=2C'), nonce)
    first = token(conn, ('n,,' + bare).encode(), version)[0].decode()
    f = dict(x.split('=', 1) for x in first.split(','))
    assert f['r'].startswith(nonce) and len(f['r']) > len(nonce) + 15
    salted = hashlib.pbkdf2_hmac(h, password.encode(), base64.b64decode(f['s']), int(f['i']))
    key = hmac.digest(salted, b'Client Key', h)
    without = 'c=biws,r=' + f['r']
    text = ','.join((bare, first, without)).encode()
    sig = hmac.digest(hashlib.new(h, key).digest(), text, h)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, sig))).decode()
    final, lifetime = token(conn, ('%s,p=%s' % (without, proof)).encode(), version)
    want = base64.b64encode(hmac.digest(hmac.digest(salted, b'Server Key', h), text, h)).decode()
    assert final.decode() == 'v=' + want
    return lifetime


def bearer(conn, jwt, version=2, authzid=None):
    who = 'a=%s' % authzid if authzid else ''
    return token(conn, ('n,%s,\1auth=Bearer %s\1\1' % (who, jwt)).encode(), version)[1]


def login(conn, user, password, mechanism='PLAIN', version=2):
    """Handshake and all. version: of SaslAuthenticate; None: SaslHandshake v0 and bare tokens."""
    handshake(conn, mechanism, 0 if version is None else 1)
    if mechanism == 'PLAIN':
        return plain(conn, user, password, version)
    if mechanism == 'OAUTHBEARER':
        return bearer(conn, password, version)
    return scram(conn, mechanism, user, password, version)


# --- JSON Web Tokens ----------------------------------------------------------------------------------------------

def b64url(b):
    return base64.urlsafe_b64encode(b).rstrip(b'=').decode()


def jwt(sub, alg='HS256', key=b'', lifetime_s=60, aud='sluice', **claims):
    """key: the shared secret, or the path of a private key in PEM."""
    body = dict({'sub': sub, 'aud': aud, 'iat': int(time.time()), 'exp': int(time.time() + lifetime_s)}, **claims)
    text = '%s.%s' % (b64url(json.dumps({'alg': alg, 'typ': 'JWT'}).encode()), b64url(json.dumps(body).encode()))
    if alg == 'none':
        return text + '.'
    if alg == 'HS256':
        return '%s.%s' % (text, b64url(hmac.digest(key, text.encode(), 'sha256')))
    der = subprocess.run(['openssl', 'dgst', '-sha256', '-sign', str(key)], input=text.encode(), capture_output=True, check=True).stdout
    if alg == 'ES256':    # DER to r and s side by side
        at, out = 2, b''
        for _ in range(2):
            n = der[at + 1]
            out += der[at + 2:at + 2 + n].lstrip(b'\0').rjust(32, b'\0')
            at += 2 + n
        der = out
    return '%s.%s' % (text, b64url(der))


# --- certificates -------------------------------------------------------------------------------------------------

def openssl(*args, stdin=None):
    p = subprocess.run(['openssl', *map(str, args)], input=stdin, capture_output=True)
    assert p.returncode == 0, 'openssl %s: %s' % (args[0], p.stderr.decode()[-500:])
    return p.stdout


class Certificates:
    """A CA of our own and what it signs, in a folder: ca.pem, NAME.pem, NAME.key."""

    def __init__(self, folder, kind='ec'):
        self.dir, self.kind = folder, kind
        folder.mkdir(parents=True, exist_ok=True)
        self._key('ca')
        openssl('req', '-x509', '-new', '-key', self.key('ca'), '-subj', '/CN=test CA', '-days', '2', '-out', self.pem('ca'))

    def pem(self, name):
        return str(self.dir / (name + '.pem'))

    def key(self, name):
        return str(self.dir / (name + '.key'))

    def _key(self, name):
        if self.kind == 'rsa':
            openssl('genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', self.key(name))
        else:
            openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', self.key(name))

    def issue(self, name, subject='/CN=localhost', san='DNS:localhost,IP:127.0.0.1', days=2):
        self._key(name)
        csr = openssl('req', '-new', '-key', self.key(name), '-subj', subject)
        ext = self.dir / (name + '.ext')
        ext.write_text('basicConstraints=CA:FALSE\n' + ('subjectAltName=%s\n' % san if san else ''))
        openssl('x509', '-req', '-CA', self.pem('ca'), '-CAkey', self.key('ca'), '-CAcreateserial', '-days', days, '-extfile', ext,
                '-out', self.pem(name), stdin=csr)
        return self.pem(name), self.key(name)
