# Truth (tests/system/test_training_scripts.py reads it):
#   steps 24                      3 epochs of 8 batches
#   optimizer_steps 48            discriminator and generator
#   epochs 3
#   samples 768
#   phases data_loading forward backward optimizer evaluation
"""A small GAN: discriminator and generator, each with its optimizer."""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--niter", type=int, default=3)
parser.add_argument("--nz", type=int, default=16)
opt = parser.parse_args()

torch.manual_seed(999)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class Generator(nn.Module):
    def __init__(self, nz):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(nz, 128), nn.BatchNorm1d(128), nn.ReLU(True), nn.Linear(128, 256), nn.Tanh())

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(256, 128), nn.LeakyReLU(0.2, True), nn.Linear(128, 1), nn.Sigmoid())

    def forward(self, x):
        return self.main(x).view(-1)


real_data = torch.tanh(torch.randn(256, 256) * 2)
dataloader = DataLoader(TensorDataset(real_data), batch_size=32, shuffle=True)
netG, netD = Generator(opt.nz).to(device), Discriminator().to(device)
criterion = nn.BCELoss()
fixed_noise = torch.randn(8, opt.nz, device=device)
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))

for epoch in range(opt.niter):
    for i, (real,) in enumerate(dataloader):
        # (1) maximise log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = real.to(device)
        label = torch.ones(real.size(0), device=device)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        fake = netG(torch.randn(real.size(0), opt.nz, device=device))
        errD_fake = criterion(netD(fake.detach()), torch.zeros_like(label))
        errD_fake.backward()
        optimizerD.step()
        # (2) maximise log(D(G(z)))
        netG.zero_grad()
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        if i % 4 == 0:
            errD = errD_real.item() + errD_fake.item()
            print(f"[{epoch}/{opt.niter}][{i}/{len(dataloader)}] Loss_D: {errD:.6f} Loss_G: {errG.item():.6f}")
    netG.eval()
    with torch.no_grad():
        print(f"samples: mean {netG(fixed_noise).mean().item():.6f}")
    netG.train()
