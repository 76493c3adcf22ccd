"""What a method's name can tell of its color."""

import bz2
import codecs
import collections
import concurrent.futures
import csv
import ftplib
import gzip
import hashlib
import html.parser
import http.client
import http.cookiejar
import imaplib
import io
import lzma
import multiprocessing.connection
import multiprocessing.pool
import pathlib
import queue
import selectors
import shelve
import smtplib
import socket
import sqlite3
import subprocess
import tarfile
import tempfile
import threading
import xml.etree.ElementTree as ET
import zipfile
import zlib

import pytest

from troth.analysis.semantics.evidence.common_method_names import GENERIC

CLASSES = [
    type(zlib.compressobj()),
    type(zlib.decompressobj()),
    type(hashlib.sha256()),
    type(csv.writer(io.StringIO())),
    bz2.BZ2Compressor,
    bz2.BZ2Decompressor,
    bz2.BZ2File,
    codecs.IncrementalDecoder,
    codecs.StreamReaderWriter,
    collections.OrderedDict,
    collections.deque,
    concurrent.futures.Executor,
    concurrent.futures.Future,
    csv.DictWriter,
    ftplib.FTP,
    gzip.GzipFile,
    html.parser.HTMLParser,
    http.client.HTTPConnection,
    http.client.HTTPResponse,
    http.cookiejar.CookieJar,
    imaplib.IMAP4,
    io.BytesIO,
    io.StringIO,
    io.TextIOWrapper,
    lzma.LZMACompressor,
    lzma.LZMADecompressor,
    multiprocessing.connection.Connection,
    multiprocessing.pool.Pool,
    pathlib.Path,
    queue.Queue,
    selectors.DefaultSelector,
    shelve.Shelf,
    smtplib.SMTP,
    socket.socket,
    sqlite3.Connection,
    sqlite3.Cursor,
    subprocess.Popen,
    tarfile.TarFile,
    tempfile.SpooledTemporaryFile,
    threading.Condition,
    threading.Event,
    threading.Thread,
    ET.XMLParser,
    ET.XMLPullParser,
    zipfile.ZipFile,
]


@pytest.mark.parametrize("cls", [pytest.param(cls, id=f"{cls.__module__}.{cls.__name__}") for cls in CLASSES])
def test_methods_of_the_standard_library_tell_nothing(cls: type) -> None:
    """A project whose only `decompress` is async still calls that of zlib: the name alone is no evidence."""
    methods = {name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name))}
    assert methods <= GENERIC
