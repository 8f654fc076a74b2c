"""The localization engine: runs in the user's environment with their Keras and TensorFlow.

Imports nothing outside the standard library until a request needs it, and nothing of ``guider_ls``.
"""
