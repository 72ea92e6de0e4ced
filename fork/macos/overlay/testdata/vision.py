"""vision.py: torchvision on 4 threads. Its compiled operators for MPS are in its wheel for macOS alone: device mps refuses them by name, or runs
them on the CPU with PYTORCH_ENABLE_MPS_FALLBACK=1. What it makes of torch's operators has values as on the CPU."""

import os
import threading

import torch
from torchvision import models, ops
from torchvision.transforms import v2

torch.manual_seed(0)
boxes = torch.tensor([[0.0, 0, 8, 8], [0, 0, 8, 7], [2, 2, 6, 6], [4, 4, 12, 12]])
scores, images = torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.rand(2, 3, 32, 32)
rois = torch.cat([torch.zeros(4, 1), boxes], dim=1)
model = models.mobilenet_v3_small(num_classes=5).eval()
on_mps = models.mobilenet_v3_small(num_classes=5).eval()
on_mps.load_state_dict(model.state_dict())
on_mps.to("mps")

compiled = {
    "torchvision::nms": lambda place: ops.nms(boxes.to(place), scores.to(place), 0.5),
    "torchvision::roi_align": lambda place: ops.roi_align(images.to(place), rois.to(place), 4),
    "torchvision::roi_pool": lambda place: ops.roi_pool(images.to(place), rois.to(place), 4),
    "torchvision::ps_roi_align": lambda place: ops.ps_roi_align(images[:, :1].repeat(1, 4, 1, 1).to(place), rois.to(place), 2),
}
made = {
    "mobilenet": lambda place: (on_mps if place == "mps" else model)(images.to(place)),
    "generalized_box_iou": lambda place: ops.generalized_box_iou(boxes.to(place), boxes.to(place)),
    "sigmoid_focal_loss": lambda place: ops.sigmoid_focal_loss(images.to(place), images.flip(0).to(place), reduction="mean"),
    "resize": lambda place: v2.functional.resize(images.to(place), [16, 24], antialias=False),
    "normalize": lambda place: v2.functional.normalize(images.to(place), [0.5] * 3, [0.25] * 3),
}
falls_back = os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK") == "1"
with torch.no_grad():
    expected = {name: function("cpu") for name, function in (compiled | made).items()}
wrong = []


@torch.no_grad()
def work():
    for name, function in (compiled | made).items():
        try:
            got = function("mps")
        except NotImplementedError as error:
            if falls_back or name not in compiled or f"'{name}' is not currently implemented for the MPS device" not in str(error):
                wrong.append(repr(error))
        except Exception as error:
            wrong.append(f"{name}: {error!r}")
        else:
            if name in compiled and not falls_back:
                wrong.append(f"{name} runs on the MPS device")
            if got.device.type != "mps" or not torch.allclose(got.cpu(), expected[name], rtol=1e-3, atol=1e-3):
                wrong.append(f"{name} differs")


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("wrong:", wrong[:3])
