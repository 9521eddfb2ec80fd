"""Bytes of a page as text.

Only the encodings of the web are read, each by Python's name for it: Python knows others that no page is written in,
and some of these take hours for what a page may hold.
"""

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w:.-]{1,40})""", re.IGNORECASE)
_PROLOGUE = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w:.-]{1,40})""")
_SEARCHED = 2048
_OLD = "cp1252"
"""What a page is written in that does not say so, and is no UTF-8."""
_ENCODINGS = {
    "utf-8": "utf8 unicode-1-1-utf-8",
    "utf-16-le": "utf-16 utf-16le unicode",
    "utf-16-be": "utf-16be",
    "cp1252": "windows-1252 cp1252 iso-8859-1 iso8859-1 latin1 latin-1 l1 us-ascii ascii x-cp1252",
    "cp1250": "windows-1250 cp1250",
    "cp1251": "windows-1251 cp1251",
    "cp1253": "windows-1253 cp1253",
    "cp1254": "windows-1254 cp1254 iso-8859-9 latin5",
    "cp1255": "windows-1255 cp1255",
    "cp1256": "windows-1256 cp1256",
    "cp1257": "windows-1257 cp1257",
    "cp1258": "windows-1258 cp1258",
    "cp874": "windows-874 tis-620 iso-8859-11",
    "cp866": "ibm866 cp866",
    "iso8859-2": "iso-8859-2 latin2",
    "iso8859-3": "iso-8859-3 latin3",
    "iso8859-4": "iso-8859-4 latin4",
    "iso8859-5": "iso-8859-5 cyrillic",
    "iso8859-6": "iso-8859-6 arabic",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew",
    "iso8859-10": "iso-8859-10 latin6",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15 latin-9 latin9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "koi8 koi8_r",
    "koi8-u": "koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic",
    "gb18030": "gbk gb2312 gb_2312-80 x-gbk cp936",
    "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5",
    "euc_jp": "euc-jp x-euc-jp",
    "iso2022_jp": "iso-2022-jp",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms_kanji",
    "cp949": "euc-kr ks_c_5601-1987 windows-949 korean",
}
_BY_LABEL = {label: name for name, labels in _ENCODINGS.items() for label in (name, *labels.split())}


def text_of(body: bytes, charset: str) -> str:
    """Return a page as text: by its mark, its server's word, its own word, or as UTF-8."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    encoding = _BY_LABEL.get(charset.lower()) or _declared(body[:_SEARCHED])
    if encoding:
        return body.decode(encoding, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode(_OLD, "replace")


def _declared(start: bytes) -> str:
    """Return what a page says of itself; one whose word can be read in ASCII is not in UTF-16."""
    found = _PROLOGUE.match(start) or _DECLARED.search(start)
    encoding = _BY_LABEL.get(found.group(1).decode("ascii", "ignore").lower(), "") if found else ""
    return "utf-8" if encoding.startswith("utf-16") else encoding
