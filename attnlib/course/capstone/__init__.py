"""A Transformer whose parts are a reader's answers: assembled, checked against the library part by part, written out.

`transformer` is the file that is assembled; it needs torch alone.
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.course.capstone.assemble import PARTS
from attnlib.course.capstone.library import beside
from attnlib.course.capstone.mine import Mine, mistakes

__all__ = ["PARTS", "Mine", "beside", "mistakes"]
