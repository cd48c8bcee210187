"""What an operator of the command line is told to do next, in one place: other hosts of a change
say it in their own words.
"""

from __future__ import annotations

GO_ON = "run the same change again"
GO_ON_OR_UNDO = f"{GO_ON}, or undo it"
FINISH = "run the same command without --rollback, which finishes it"
UNDO = "run the same change with --rollback"
