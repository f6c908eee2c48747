"""A result as one HTML page that needs nothing from elsewhere.

- :mod:`drawing`: pictures as SVG that follows the page's colours, and as files
- :mod:`live`: interactive forms of charts, by Bokeh
- :mod:`beside`: what may lie beside a result: own table, receipt, ledger
- :mod:`section`: a part of a page, as plain data
- :mod:`reviewed`: a review as parts of a page
- :mod:`sections`: what stands on a report's page
- :mod:`page`: the page: template, style and script put together
"""

from __future__ import annotations

from atoll.report.html.beside import Beside
from atoll.report.html.page import report_html

__all__ = ["Beside", "report_html"]
