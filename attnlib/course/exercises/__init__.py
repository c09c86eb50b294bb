"""The exercises: for each lesson a module ``lessonNN`` with a list ``EXERCISES``, for `attnlib.course.grading`."""
