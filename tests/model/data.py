"""The data of a server as far as queues need them: keys of five kinds, and the plain commands that change them."""

from __future__ import annotations

from collections.abc import Callable


class Zset(dict):  # member -> score
    pass


class Hash(dict):  # field -> value
    pass


class List(list):
    pass


class Members(set):
    pass


Value = Zset | Hash | List | Members | bytes


class Plain:
    """The plain commands: the only code that writes. A key that becomes empty is gone."""

    def __init__(self, keys: dict[bytes, Value]) -> None:
        self.keys = keys

    def run(self, command: str, key: bytes, *words: bytes) -> None:
        pairs = list(zip(words[::2], words[1::2], strict=False))
        if command == "DEL":
            self.keys.pop(key, None)
        elif command == "SET":
            self.keys[key] = words[0]
        elif command == "RENAME":
            if key in self.keys:
                self.keys[words[0]] = self.keys.pop(key)
        elif command == "HSET":
            self._change(key, Hash, lambda value: value.update(pairs))
        elif command == "HDEL":
            self._change(key, Hash, lambda value: [value.pop(field, None) for field in words])
        elif command == "ZADD":
            self._change(key, Zset, lambda value: value.update((member, int(score)) for score, member in pairs))
        elif command == "ZREM":
            self._change(key, Zset, lambda value: [value.pop(member, None) for member in words])
        elif command == "SADD":
            self._change(key, Members, lambda value: value.update(words))
        elif command == "SREM":
            self._change(key, Members, lambda value: value.difference_update(words))
        elif command == "RPUSH":
            self._change(key, List, lambda value: value.extend(words))
        elif command == "LPUSH":
            self._change(key, List, lambda value: [value.insert(0, word) for word in words])
        elif command == "LREM":  # all of them, count 0
            self._change(key, List, lambda value: [value.remove(words[1]) for _ in range(value.count(words[1]))])
        elif command == "LTRIM":
            first, last = int(words[0]), int(words[1])
            self._change(key, List, lambda value: value.__setitem__(slice(None), value[first : last + 1 or None]))
        else:
            raise AssertionError(f"the model has no plain {command}")

    def _change(self, key: bytes, kind: type, change: Callable[..., object]) -> None:
        value = self.keys.setdefault(key, kind())
        if type(value) is kind:
            change(value)
            if not value:
                del self.keys[key]
