"""One fetch on its way from place to place: where a redirect may lead."""

from dragoman.http.addresses import Allowed
from dragoman.http.locations import Location, Refused
from dragoman.tools.web.domains import Domains
from dragoman.tools.web.telling import between

_LONGEST = 1000


class Journey:
    """Is shown each place before it is asked; `leaves` says that a redirect to another host is followed."""

    def __init__(self, domains: Domains, private: Allowed, *, leaves: bool) -> None:
        self._domains, self._private, self._leaves = domains, private, leaves
        self._host = ""
        self._was_private = False

    def admit(self, place: Location) -> None:
        """Raise `Refused` for a place that must not be asked."""
        self._domains.admit(place)
        host = place.host.removeprefix("www.").rstrip(".")
        is_private = self._private.host(place.host, place.port)
        if self._host and is_private and not self._was_private:
            # A place that only we can reach is asked for what we choose, and not for what somebody out there does.
            raise Refused("it redirects to a place that is not public")
        if self._host and host != self._host and not self._leaves:
            target = [place.url] if len(place.url) <= _LONGEST else [f"(a long address on {place.host})"]
            raise Refused(
                "\n".join(["it redirects to another host.", *between(target), "To go there, fetch that address."])
            )
        self._host, self._was_private = host, is_private
