"""A folder of images: each sub-folder is a class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import EngineFailure, first_line, unusable
from guider_engine.load.inputs import ModelInput
from guider_engine.wire import Inputs

from .checks import package_missing
from .sampling import draw
from .testset import Block

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif"})
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}

Decode = Callable[[Path], "NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class ImageTests:
    """Images that are decoded when they are run; see `TestSet`."""

    files: tuple[Path, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    decode: Decode
    description: str
    notices: tuple[tuple[str, str], ...]
    available: int | None

    @property
    def total(self) -> int:
        """How many are given."""
        return len(self.files)

    def blocks(self, rows: int) -> Iterator[Block]:
        """Decoded images."""
        for start in range(0, len(self.files), rows):
            part = self.files[start : start + rows]
            yield Block(np.stack([self.decode(file) for file in part]), self.labels[start : start + rows])


def is_image_folder(folder: Path) -> bool:
    """Whether a sub-folder holds an image."""
    return any(_images(sub) for sub in folder.iterdir() if sub.is_dir())


def of_folder(folder: Path, options: Inputs, wanted: tuple[ModelInput, ...]) -> ImageTests:
    """The images below a folder, in the size that the model takes.

    Args:
        folder: whose sub-folders, in the order of their names, are the classes 0, 1, …
        options: for ``image_scale``, ``max_tests`` and ``seed``.
        wanted: what the model takes; without it, images have the size of the first.

    Raises:
        EngineFailure: there are no images, or nothing that decodes them.
    """
    # A class without tests has its number, too, as in Keras' image_dataset_from_directory.
    classes = tuple(
        sorted(sub.name for sub in folder.iterdir() if sub.is_dir() and not sub.name.startswith("."))
    )
    files = [(file, number) for number, name in enumerate(classes) for file in sorted(_images(folder / name))]
    if not files:
        raise unusable(
            "test-data-empty",
            f"{folder.name} has no sub-folder with images ({', '.join(sorted(SUFFIXES))}); expected one for each "
            f"class.\n{folder}",
        )
    labels = np.array([number for _, number in files])
    available, sampled = None, ""
    if options.max_tests is not None and options.max_tests < len(files):
        chosen, how = draw(labels, options.max_tests, options.seed)
        available, sampled = len(files), f"; {options.max_tests:,} of {len(files):,} tests, {how}"
        files, labels = [files[i] for i in chosen], labels[chosen]
    decode = _decoder(files[0][0], wanted, options.image_scale)
    first = decode(files[0][0])
    high = 255 * options.image_scale
    described = (
        f"{folder.name}: {len(files):,} images of {'×'.join(map(str, first.shape))}, {len(classes)} classes: "
        f"{', '.join(classes[:5])}{', …' if len(classes) > 5 else ''}{sampled}"
    )
    notices: tuple[tuple[str, str], ...] = ()
    if options.image_scale == 1.0:
        notices = (
            (
                "image-range",
                "Images are fed as numbers from 0 to 255. If the training divided them by 255, set image_scale = "
                "0.00392156862745098 (guider.imageScale, --image-scale).",
            ),
        )
    else:
        described += f"; numbers from 0 to {high:g}"
    paths = tuple(file for file, _ in files)
    return ImageTests(paths, labels, classes, decode, described, notices, available)


def _images(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file()]


def _decoder(first: Path, wanted: tuple[ModelInput, ...], scale: float) -> Decode:
    shape = wanted[0].shape if len(wanted) == 1 else None
    size: tuple[int, int] | None = None
    channels = 3
    if shape is not None and len(shape) == 3:
        height, width, of_model = shape
        channels = of_model or 3
        if height is not None and width is not None:
            size = (height, width)
    elif shape is not None and len(shape) == 2 and None not in shape:
        size, channels = (int(shape[0] or 0), int(shape[1] or 0)), 1
    if channels not in _MODES:
        raise unusable(
            "test-data-shape", f"The model takes images of {channels} channels; image files have 1, 3 or 4."
        )
    try:
        from PIL import Image
    except ImportError:
        return _by_tensorflow(size, channels, scale, first)

    def decode(file: Path) -> NDArray[np.float32]:
        try:
            with Image.open(file) as image:
                pixels = image.convert(_MODES[channels])
                if size is not None and pixels.size != size[::-1]:
                    pixels = pixels.resize(size[::-1], Image.Resampling.BILINEAR)
                array: NDArray[np.float32] = np.asarray(pixels, np.float32) * np.float32(scale)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise _broken(file, error) from error
        return array if array.ndim == 3 else array[:, :, None]

    return _of_one_size(decode, first, size)


def _by_tensorflow(size: tuple[int, int] | None, channels: int, scale: float, first: Path) -> Decode:
    try:
        import tensorflow as tf
    except ImportError as error:
        raise package_missing(
            "pillow", "An image folder", "save the images as arrays with np.savez"
        ) from error

    def decode(file: Path) -> NDArray[np.float32]:
        try:
            content = tf.io.read_file(str(file))
            image: Any = tf.io.decode_image(content, expand_animations=False)
            image = tf.cast(_of_channels(tf, image, channels), tf.float32)
            if size is not None and tuple(image.shape[:2]) != size:
                image = tf.round(tf.image.resize(image, size, antialias=True))  # as Pillow does
        except Exception as error:
            raise _broken(file, error) from error
        array: NDArray[np.float32] = np.asarray(image, np.float32) * np.float32(scale)
        return array

    return _of_one_size(decode, first, size)


def _of_channels(tf: Any, image: Any, channels: int) -> Any:
    """The decoded bytes with that many channels, which TensorFlow itself does for PNG only; opaque without alpha."""
    have = image.shape[2]
    if have == channels:
        return image
    colors = image[:, :, : have - (have in (2, 4))]
    if channels == 1:
        return colors if have == 2 else tf.image.rgb_to_grayscale(colors)
    if have < 3:
        colors = tf.image.grayscale_to_rgb(colors)
    if channels == 3:
        return colors
    alpha = image[:, :, 1:] if have == 2 else tf.fill((*image.shape[:2], 1), tf.constant(255, tf.uint8))
    return tf.concat([colors, alpha], axis=2)


def _of_one_size(decode: Decode, first: Path, size: tuple[int, int] | None) -> Decode:
    """Without a size of the model's, all images must have that of the first."""
    if size is not None:
        return decode
    expected = decode(first).shape

    def checked(file: Path) -> NDArray[np.float32]:
        array = decode(file)
        if array.shape != expected:
            raise unusable(
                "test-data-shape",
                f"Images have different sizes, {expected[:2]} ({first.name}) and {array.shape[:2]} ({file.name}), and "
                "the model says none. Resize them.",
            )
        return array

    return checked


def _broken(file: Path, error: Exception) -> EngineFailure:
    return unusable(
        "test-data-damaged",
        f"The image {file.parent.name}/{file.name} cannot be read: {first_line(error)}. Write it again, or "
        f"take it out.\n{file}",
    )
