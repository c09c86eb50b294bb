"""The course around the library: its lessons and claims, what its cells print, and its exercises.

It may use everything; nothing outside it uses it.
"""

from attnlib._base.lazy import lazy

__all__, __getattr__, __dir__ = lazy(
    "attnlib.course",
    {
        "display": ["check_close", "show", "show_source"],
        "environment": ["check_environment"],
        "grading": ["check", "hint", "progress", "solution"],
        "lesson_map": ["course_map"],
        "lessons": ["LESSONS", "PARTS", "Lesson", "as_markdown"],
        "study": ["Study"],
    },
    {"": ["drawings"]},
)
