"""The HTTP client below two of the SDKs, without the steps that one POST to one address does not need.

Imported when a vendor is opened, as the SDKs are: both need `httpx2`.
"""

from typing import Any

import httpx2

_OF_THE_BODY = {"content-encoding", "content-length", "transfer-encoding"}


class DirectClient(httpx2.AsyncClient):
    """Sends a request once: no merging of addresses, no cookies, no redirects, no authentication of its own.

    To be put before an SDK's own client class, whose transport it uses. A request that is anything but a body for a
    known address goes the usual way. Measured, the steps left out were a sixth of a call's work.
    """

    _address: tuple[object, httpx2.URL] | None = None

    def build_request(self, method: str, url: httpx2.URL | str, **given: Any) -> httpx2.Request:
        """Build a request; see `httpx2.AsyncClient`."""
        content, headers, timeout = (given.pop(name, None) for name in ("content", "headers", "timeout"))
        if content is None or not isinstance(timeout, httpx2.Timeout) or any(given.values()):
            return super().build_request(method, url, content=content, headers=headers, timeout=timeout, **given)
        if self._address is None or self._address[0] != url:
            self._address = url, httpx2.URL(url)
        extensions = {"timeout": timeout.as_dict()}
        return httpx2.Request(method, self._address[1], content=content, headers=headers, extensions=extensions)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **ignored: Any) -> httpx2.Response:
        """Send a request; see `httpx2.AsyncClient`. Redirects are never followed."""
        transport = self._transport_for_url(request.url)
        response = await transport.handle_async_request(request)
        response.request = request
        if "set-cookie" in response.headers and (session := getattr(transport, "client", None)) is not None:
            # The library below keeps them, and would send them with every later call.
            session.cookie_jar.clear()
        if not stream:
            try:
                await response.aread()
            except BaseException as error:
                await response.aclose()
                if isinstance(error, Exception) and response.status_code >= httpx2.codes.BAD_REQUEST:
                    return _without_body(response)
                raise
        return response


def _without_body(response: httpx2.Response) -> httpx2.Response:
    """Return a failure whose text broke off: its status and headers say what to do all the same."""
    kept = {name: value for name, value in response.headers.items() if name not in _OF_THE_BODY}
    return httpx2.Response(response.status_code, headers=kept, content=b"", request=response.request)
