"""A site: the campaigns of several ledgers as a folder of pages, without a server.

In reading order:

- ``building.py``: writes what is missing or has changed, in several processes
- ``campaigns.py``: the campaigns of all ledgers, with what each page depends on
- ``manifest.py``: the file in which a site remembers its pages, and the check of its folder
- ``index.py``: the index, its lists, the feed of changes and the badges, from the manifest alone
- ``feed.py``: the feed, in Atom
- ``badges.py``: a badge, in SVG
"""

from equipoise.site.building import (
    PageContent,
    PageTask,
    SiteReport,
    SiteRequest,
    build_site,
)

__all__ = ["PageContent", "PageTask", "SiteReport", "SiteRequest", "build_site"]
